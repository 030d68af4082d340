// Scripts of `redis` and `ioredis` across a restart of the server: node script_restart.js PORT plain|cluster.
// The program writes `ready` once the scripts are known, and goes on when its input ends: the server has forgotten them
// then, and both clients fall back from the digest to the text.

import assert from 'node:assert/strict';
import { createClient, createCluster, defineScript } from 'redis';
import { Cluster, Redis } from 'ioredis';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];
const APPEND = `redis.call('APPEND', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])`;
const KEYS = ['apple', 'banana', 'cherry', 'damson'];

const scripts = {
  append: defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: APPEND,
    parseCommand(parser, key, value) {
      parser.pushKey(key);
      parser.push(value);
    },
    transformReply: (reply) => reply,
  }),
};
const nodeRedis = mode === 'cluster'
  ? createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], scripts })
  : createClient({ url: `redis://127.0.0.1:${port}`, scripts });
const ioredis = mode === 'cluster' ? new Cluster([{ host: '127.0.0.1', port }]) : new Redis(port, '127.0.0.1');
// Both lose their connections while the server restarts, and say so; they connect again by themselves.
nodeRedis.on('error', () => {});
ioredis.on('error', () => {});
await nodeRedis.connect();
ioredis.defineCommand('append', { numberOfKeys: 1, lua: APPEND });

for (const key of KEYS) {
  assert.equal(await nodeRedis.append(key, 'a'), 'a');
  assert.equal(await ioredis.append(key, 'b'), 'ab');
  const pipelined = await ioredis.pipeline().append(key, 'c').append(key, 'd').exec();
  assert.deepEqual(pipelined, [[null, 'abc'], [null, 'abcd']]);
}

console.log('ready');
await new Promise((resolve) => process.stdin.on('end', resolve).resume());

for (const client of [nodeRedis, ioredis]) {
  for (;;) {
    try {
      for (const key of KEYS) await client.get(key);
      break;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
const direct = new Redis(port, '127.0.0.1');
for (const key of KEYS) {
  assert.equal(await ioredis.append(key, 'e'), 'abcde');
  await direct.script('FLUSH');
  const pipelined = await ioredis.pipeline().append(key, 'f').append(key, 'g').exec();
  assert.deepEqual(pipelined, [[null, 'abcdef'], [null, 'abcdefg']]);
  await direct.script('FLUSH');
  assert.equal(await nodeRedis.append(key, 'h'), 'abcdefgh');
}
direct.disconnect();
ioredis.disconnect();
nodeRedis.destroy();
