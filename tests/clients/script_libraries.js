// Libraries that live on their scripts: node script_libraries.js PORT plain|cluster.

import assert from 'node:assert/strict';
import { Cluster, Redis } from 'ioredis';
import { BurstyRateLimiter, RateLimiterRedis } from 'rate-limiter-flexible';
import Redlock from 'redlock';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];
const connect = () => (mode === 'cluster'
  ? new Cluster([{ host: '127.0.0.1', port }])
  : new Redis(port, '127.0.0.1', { enableOfflineQueue: false }));
const client = connect();
client.on('error', (error) => { throw error; });
await new Promise((resolve) => { client.once('ready', resolve); });

// rate-limiter-flexible
const limiter = new RateLimiterRedis({ storeClient: client, keyPrefix: 'limit', points: 5, duration: 60 });
for (const user of ['ada', 'grace', 'linus', 'ken']) {
  for (let point = 1; point <= 5; point++) {
    const state = await limiter.consume(user);
    assert.equal(state.consumedPoints, point);
    assert.equal(state.remainingPoints, 5 - point);
  }
  const refused = await limiter.consume(user).then(() => null, (state) => state);
  assert.ok(refused && refused.msBeforeNext > 50_000, 'the sixth call waits for the next window');
  assert.equal((await limiter.get(user)).consumedPoints, 6);
  await limiter.penalty(user, 2);
  await limiter.reward(user, 3);
  assert.equal((await limiter.get(user)).consumedPoints, 5);
  assert.equal(await limiter.delete(user), true);
}
const blocking = new RateLimiterRedis({ storeClient: client, keyPrefix: 'block', points: 1, duration: 60, blockDuration: 600 });
await blocking.consume('ada');
const blocked = await blocking.consume('ada').then(() => null, (state) => state);
assert.ok(blocked.msBeforeNext > 500_000);
const bursty = new BurstyRateLimiter(
  new RateLimiterRedis({ storeClient: client, keyPrefix: 'steady', points: 1, duration: 60 }),
  new RateLimiterRedis({ storeClient: client, keyPrefix: 'burst', points: 2, duration: 60 }),
);
await bursty.consume('ada');
await bursty.consume('ada');
await bursty.consume('ada');
assert.ok(await bursty.consume('ada').then(() => false, () => true));
const counted = await Promise.allSettled(
  Array.from({ length: 200 }, () => new RateLimiterRedis({ storeClient: client, keyPrefix: 'many', points: 100, duration: 60 }).consume('x')),
);
assert.equal(counted.filter(({ status }) => status === 'fulfilled').length, 100);

// redlock
const redlock = new Redlock([client], { retryCount: 400, retryDelay: 5, retryJitter: 5 });
const first = await redlock.lock('locks:job', 10_000);
const impatient = new Redlock([client], { retryCount: 0 });
assert.ok(await impatient.lock('locks:job', 1000).then(() => false, () => true), 'the lock is held');
const longer = await first.extend(20_000);
await longer.unlock();
let inside = 0;
let counter = 0;
await Promise.all(Array.from({ length: 20 }, async () => {
  const lock = await redlock.lock('locks:counter', 10_000);
  inside += 1;
  assert.equal(inside, 1, 'one at a time');
  const before = Number(await client.get('counter') ?? 0);
  await client.set('counter', before + 1);
  counter += 1;
  inside -= 1;
  await lock.unlock();
}));
assert.equal(Number(await client.get('counter')), 20);
assert.equal(counter, 20);
client.disconnect();
