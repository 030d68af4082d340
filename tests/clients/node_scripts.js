// Scripts through `redis` and `ioredis`: node node_scripts.js PORT plain|cluster.
// Both call by digest and fall back to the text: before the script is known, and after SCRIPT FLUSH.

import assert from 'node:assert/strict';
import { createClient, createCluster, defineScript } from 'redis';
import { Cluster, Redis } from 'ioredis';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];
const COMPARE_AND_SET = `
  if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('SET', KEYS[1], ARGV[2])
    return 1
  end
  return 0`;
const KEYS = ['apple', 'banana', 'cherry', 'damson'];

const scripts = {
  compareAndSet: defineScript({
    NUMBER_OF_KEYS: 1,
    SCRIPT: COMPARE_AND_SET,
    parseCommand(parser, key, expected, value) {
      parser.pushKey(key);
      parser.push(expected, value);
    },
    transformReply: (reply) => reply,
  }),
};
const nodeRedis = mode === 'cluster'
  ? createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${port}` }], scripts })
  : createClient({ url: `redis://127.0.0.1:${port}`, scripts });
nodeRedis.on('error', (error) => { throw error; });
await nodeRedis.connect();

const ioredis = mode === 'cluster' ? new Cluster([{ host: '127.0.0.1', port }]) : new Redis(port, '127.0.0.1');
ioredis.on('error', (error) => { throw error; });
ioredis.defineCommand('compareAndSet', { numberOfKeys: 1, lua: COMPARE_AND_SET });

const plain = new Redis(port, '127.0.0.1');
for (let round = 0; round < 3; round++) {
  for (const key of KEYS) {
    await nodeRedis.set(key, 'old');
    assert.equal(await nodeRedis.compareAndSet(key, 'wrong', 'x'), 0);
    assert.equal(await nodeRedis.compareAndSet(key, 'old', 'new'), 1);
    assert.equal(await ioredis.compareAndSet(key, 'new', 'newer'), 1);
    assert.equal(await ioredis.get(key), 'newer');
    const pipelined = await ioredis.pipeline().compareAndSet(key, 'newer', 'a').compareAndSet(key, 'a', 'b').exec();
    assert.deepEqual(pipelined, [[null, 1], [null, 1]]);
  }
  await plain.script('FLUSH');
}
plain.disconnect();
ioredis.disconnect();
nodeRedis.destroy();
