// Sessions of an express application in Redis, with `connect-redis`: node express_sessions.js PORT plain|cluster.
// Two applications stand for two processes behind one address: what one has put into a session, the other sees.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { RedisStore } from 'connect-redis';
import express from 'express';
import session from 'express-session';
import { createClient, createCluster } from 'redis';

const [port, mode] = [Number(process.argv[2]), process.argv[3]];
const url = `redis://127.0.0.1:${port}`;

async function startApplication() {
  const client = mode === 'cluster' ? createCluster({ rootNodes: [{ url }] }) : createClient({ url });
  client.on('error', (error) => { throw error; });
  await client.connect();
  const store = new RedisStore({ client, prefix: 'site:' });
  const application = express();
  application.use(session({ store, secret: 'a secret', resave: false, saveUninitialized: false, cookie: { maxAge: 60_000 } }));
  application.use(express.json());
  application.get('/views', (request, response) => {
    request.session.views = (request.session.views ?? 0) + 1;
    response.json({ views: request.session.views, user: request.session.user ?? null });
  });
  application.get('/look', (request, response) => { response.json({ id: request.session.id }); });
  application.post('/login', (request, response, next) => {
    request.session.regenerate((error) => {
      if (error) return next(error);
      request.session.user = request.body;
      return response.json({ id: request.session.id });
    });
  });
  application.post('/logout', (request, response, next) => {
    request.session.destroy((error) => (error ? next(error) : response.sendStatus(204)));
  });
  const server = application.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${server.address().port}`;
  return { address, client, store, stop: async () => { server.close(); await client.close(); } };
}

// A visitor's browser: it keeps the cookie.
class Visitor {
  cookie = undefined;

  async fetch(application, path, options = {}) {
    const headers = { 'content-type': 'application/json', ...(this.cookie && { cookie: this.cookie }) };
    const response = await fetch(application.address + path, { ...options, headers });
    const cookies = response.headers.getSetCookie();
    if (cookies.length) this.cookie = cookies[0].split(';')[0];
    assert.ok(response.ok, `${path}: ${response.status} ${response.ok ? '' : await response.text()}`);
    return response.status === 204 ? null : response.json();
  }
}

const applications = [await startApplication(), await startApplication()];
const [first, second] = applications;
const { client, store } = first;

const visitors = Array.from({ length: 20 }, () => new Visitor());
for (let round = 1; round <= 3; round += 1) {
  const replies = await Promise.all(visitors.map((visitor) => visitor.fetch(applications[round % 2], '/views')));
  assert.deepEqual(replies, visitors.map(() => ({ views: round, user: null })));
}
assert.equal(await store.length(), 20);

const [visitor] = visitors;
const before = decodeURIComponent(visitor.cookie);
const user = { name: 'Zoë', roles: ['editor', 'admin'] };
const { id } = await visitor.fetch(first, '/login', { method: 'POST', body: JSON.stringify(user) });
assert.notEqual(decodeURIComponent(visitor.cookie), before, 'a login makes a new session');
assert.deepEqual(await visitor.fetch(second, '/views'), { views: 1, user });
assert.deepEqual((await store.get(id)).user, user);
assert.equal(await store.length(), 20, 'the session before the login has gone');
assert.ok((await store.ids()).includes(id));

// A visit without a change prolongs the session.
await client.expire(`site:${id}`, 10);
await visitor.fetch(second, '/look');
const ttl = await client.ttl(`site:${id}`);
assert.ok(ttl > 10 && ttl <= 60, `${ttl} seconds left`);

await visitor.fetch(first, '/logout', { method: 'POST' });
assert.equal(await store.get(id), null);
assert.deepEqual(await visitor.fetch(second, '/views'), { views: 1, user: null });

// An expired session is none.
const { id: other } = await visitors[1].fetch(first, '/look');
await client.pExpire(`site:${other}`, 1);
while (await client.exists(`site:${other}`)) { /* it has a millisecond to live */ }
assert.deepEqual(await visitors[1].fetch(second, '/views'), { views: 1, user: null });

await Promise.all(applications.map((application) => application.stop()));
