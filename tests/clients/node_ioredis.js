// Drives the `ioredis` package, plain or cluster-aware: node node_ioredis.js PORT plain|cluster.
// Works as an application would and throws at the first wrong answer.

import assert from 'node:assert/strict';
import { Cluster, Redis } from 'ioredis';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];
const client = mode === 'cluster'
  ? new Cluster([{ host: '127.0.0.1', port }])
  : new Redis(port, '127.0.0.1');
client.on('error', (error) => { throw error; });

if (mode === 'cluster') {
  await new Promise((resolve) => { client.once('ready', resolve); });
  await Promise.all(client.nodes('master').map((node) => node.flushall()));
} else {
  await client.flushall();
}

assert.equal(await client.get('missing'), null);
assert.equal(await client.set('greeting', 'hello'), 'OK');
assert.equal(await client.get('greeting'), 'hello');
assert.equal(await client.set('greeting', 'x', 'NX'), null);
assert.equal(await client.incrby('counter', 42), 42);
await client.set('deadline', 'x', 'EX', 100);
const ttl = await client.ttl('deadline');
assert.ok(ttl > 0 && ttl <= 100);
const binary = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 256));
await client.set('binary', binary);
assert.deepEqual(await client.getBuffer('binary'), binary);

assert.equal(await client.hset('hash', { a: '1', b: '2' }), 2);
assert.deepEqual(await client.hgetall('hash'), { a: '1', b: '2' });
assert.equal(await client.rpush('list', '1', '2', '3'), 3);
assert.deepEqual(await client.lrange('list', 0, -1), ['1', '2', '3']);
assert.equal(await client.sadd('set', 'x', 'y'), 2);
assert.deepEqual((await client.smembers('set')).sort(), ['x', 'y']);
await client.zadd('zset', 1, 'one', 2.5, 'two');
assert.deepEqual(await client.zrange('zset', 0, -1, 'WITHSCORES'), ['one', '1', 'two', '2.5']);
assert.deepEqual(await client.mget('{many}a', '{many}b'), [null, null]);
await assert.rejects(client.lpush('zset', 'x'), /WRONGTYPE/);

const numbers = Array.from({ length: 1_000 }, (_, number) => number);
await Promise.all(numbers.map((number) => client.set(`many:${number}`, String(number))));
const values = await Promise.all(numbers.map((number) => client.get(`many:${number}`)));
assert.deepEqual(values, numbers.map(String));

// A cluster-aware pipeline of this package wants all its keys on one node; a plain one takes any.
const pipeline = client.pipeline();
const name = (number) => (mode === 'cluster' ? `{one}:${number}` : `pipelined:${number}`);
for (const number of numbers) pipeline.set(name(number), String(number)).get(name(number));
const replies = await pipeline.exec();
assert.deepEqual(replies.filter((_, index) => index % 2).map(([, value]) => value), numbers.map(String));

if (mode === 'plain') {
  const found = new Set();
  for await (const keys of client.scanStream({ match: 'pipelined:*', count: 100 })) {
    for (const key of keys) found.add(key);
  }
  assert.equal(found.size, 1_000);
}
await client.quit();
