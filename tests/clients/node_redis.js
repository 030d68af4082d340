// Drives the `redis` package, plain or cluster-aware: node node_redis.js PORT plain|cluster.
// Works as an application would and throws at the first wrong answer.

import assert from 'node:assert/strict';
import { RESP_TYPES, createClient, createCluster } from 'redis';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];

async function connect(RESP) {
  const url = `redis://127.0.0.1:${port}`;
  const client = mode === 'cluster'
    ? createCluster({ rootNodes: [{ url }], RESP })
    : createClient({ url, RESP });
  client.on('error', (error) => { throw error; });
  await client.connect();
  return client;
}

async function flush(client) {
  if (mode === 'cluster') {
    for (const master of client.masters) {
      await (await client.nodeClient(master)).flushAll();
    }
  } else {
    await client.flushAll();
  }
}

async function work(client) {
  assert.equal(await client.get('missing'), null);
  assert.equal(await client.set('greeting', 'hello'), 'OK');
  assert.equal(await client.get('greeting'), 'hello');
  assert.equal(await client.set('greeting', 'x', { NX: true }), null);
  assert.equal(await client.incrBy('counter', 42), 42);
  await client.set('deadline', 'x', { EX: 100 });
  const ttl = await client.ttl('deadline');
  assert.ok(ttl > 0 && ttl <= 100);
  const binary = Buffer.from(Array.from({ length: 10_000 }, (_, index) => index % 256));
  await client.set('binary', binary);
  const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  assert.deepEqual(await buffers.get('binary'), binary);

  assert.equal(await client.hSet('hash', { a: '1', b: '2' }), 2);
  assert.deepEqual({ ...(await client.hGetAll('hash')) }, { a: '1', b: '2' });
  assert.equal(await client.rPush('list', ['1', '2', '3']), 3);
  assert.deepEqual(await client.lRange('list', 0, -1), ['1', '2', '3']);
  assert.equal(await client.sAdd('set', ['x', 'y']), 2);
  assert.deepEqual([...(await client.sMembers('set'))].sort(), ['x', 'y']);
  await client.zAdd('zset', [{ score: 1, value: 'one' }, { score: 2.5, value: 'two' }]);
  assert.deepEqual(
    (await client.zRangeWithScores('zset', 0, -1)).map(({ score, value }) => [score, value]),
    [[1, 'one'], [2.5, 'two']],
  );
  assert.deepEqual(await client.mGet(['{many}a', '{many}b']), [null, null]);
  await assert.rejects(client.lPush('zset', 'x'), /WRONGTYPE/);

  const numbers = Array.from({ length: 1_000 }, (_, number) => number);
  await Promise.all(numbers.map((number) => client.set(`many:${number}`, String(number))));
  const values = await Promise.all(numbers.map((number) => client.get(`many:${number}`)));
  assert.deepEqual(values, numbers.map(String));
  if (mode === 'plain') {
    const found = new Set();
    for await (const keys of client.scanIterator({ MATCH: 'many:*', COUNT: 100 })) {
      for (const key of [keys].flat()) found.add(key);
    }
    assert.equal(found.size, 1_000);
  }
}

for (const protocol of [2, 3]) {
  const client = await connect(protocol);
  await flush(client);
  await work(client);
  await client.close();
}
