// bee-queue moves jobs, some of them delayed and some failing at first: node bee_queue.js PORT JOBS.
// None is lost, and none is done twice.

import assert from 'node:assert/strict';
import Queue from 'bee-queue';

const [port, count] = [Number(process.argv[2]), Number(process.argv[3])];
const settings = {
  redis: { host: '127.0.0.1', port },
  prefix: 'bq:{work}',
  activateDelayedJobs: true,
  removeOnSuccess: true,
  delayedDebounce: 50,
  sendEvents: false,
  getEvents: false,
};
const sender = new Queue('mail', { ...settings, isWorker: false });
const workers = [1, 2].map(() => new Queue('mail', settings));
await Promise.all([sender, ...workers].map((queue) => queue.ready()));

const done = new Map();
const attempts = new Map();
let finish;
const finished = new Promise((resolve) => { finish = resolve; });
for (const worker of workers) {
  worker.process(20, async (job) => {
    const { number } = job.data;
    attempts.set(number, (attempts.get(number) ?? 0) + 1);
    // Every tenth job fails at first, and is tried again.
    if (number % 10 === 3 && attempts.get(number) < 3) {
      throw new Error('not yet');
    }
    done.set(number, (done.get(number) ?? 0) + 1);
    if (done.size === count) {
      finish();
    }
    return number;
  });
  worker.on('error', (error) => { throw error; });
}

const jobs = Array.from({ length: count }, (_, number) => {
  const job = sender.createJob({ number }).retries(5);
  return number % 20 === 7 ? job.delayUntil(Date.now() + 200 + (number % 300)) : job;
});
while (jobs.length > 0) {
  const errors = await sender.saveAll(jobs.splice(0, 500));
  assert.equal(errors.size, 0);
}
await finished;
for (let number = 0; number < count; number++) {
  assert.equal(done.get(number), 1, `job ${number}`);
  assert.equal(attempts.get(number), number % 10 === 3 ? 3 : 1, `attempts of job ${number}`);
}
// What the last jobs leave is removed right behind them.
const deadline = Date.now() + 20_000;
for (;;) {
  const health = await sender.checkHealth();
  if (health.waiting + health.active + health.delayed + health.failed === 0) break;
  assert.ok(Date.now() < deadline, JSON.stringify(health));
  await new Promise((resolve) => { setTimeout(resolve, 20); });
}
await Promise.all([sender, ...workers].map((queue) => queue.close()));
