// A chat over two Socket.IO server processes that speak through Redis: node socket_io.js PORT ADAPTER, the adapter being
// KIND-CLIENT: `classic` or `sharded` publishing, by `node` or `cluster` of the package `redis` or by `ioredis`.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { io } from 'socket.io-client';

const [port, adapter] = process.argv.slice(2);

async function startServer(name) {
  const child = fork('socket_io_server.js', [port, adapter, name]);
  child.once('exit', (code) => { if (code) process.exit(1); });
  const [message] = await once(child, 'message');
  return { child, address: `http://127.0.0.1:${message.port}` };
}

async function visit(server) {
  const socket = io(server.address, { transports: ['websocket'], forceNew: true, reconnection: false });
  socket.inbox = [];
  socket.on('message', (text) => { socket.inbox.push(text); });
  await once(socket, 'connect');
  return socket;
}

async function received(socket, ...texts) {
  while (socket.inbox.length < texts.length) await once(socket, 'message');
  const came = socket.inbox.splice(0);
  // A cluster's client publishes over the connections to its nodes in turn, which keep no order among them.
  const order = adapter === 'classic-cluster' ? (list) => list.toSorted() : (list) => list;
  assert.deepEqual(order(came), order(texts));
}

// What another process has joined is told by Redis: until then nobody is counted on.
async function until(what, condition) {
  const deadline = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `waited too long: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 5); });
  }
}

const servers = await Promise.all(['left', 'right'].map(startServer));
const [ann, bob, cid, dan] = await Promise.all([0, 1, 0, 1].map((index) => visit(servers[index])));
const everybody = [ann, bob, cid, dan];
await until('both servers are there', async () => (await ann.emitWithAck('servers')) === 2
  && (await bob.emitWithAck('servers')) === 2);

// To everybody, whoever's server says it.
ann.emit('shout', 'from the left');
await Promise.all(everybody.map((socket) => received(socket, 'from the left')));
bob.emit('shout', 'from the right');
await Promise.all(everybody.map((socket) => received(socket, 'from the right')));

// To rooms over both servers, in order; nobody else hears it.
await Promise.all([ann, bob, dan].map((socket) => socket.emitWithAck('join', 'room')));
const inRoom = [ann, bob, dan].map(({ id }) => id).sort();
for (const socket of [ann, bob]) assert.deepEqual(await socket.emitWithAck('who', 'room'), inRoom);
const texts = Array.from({ length: 100 }, (_, number) => `message ${number}`);
for (const text of texts) ann.emit('say', 'room', text);
await Promise.all([bob, dan].map((socket) => received(socket, ...texts)));
await dan.emitWithAck('leave', 'room');
bob.emit('say', 'room', 'without dan');
await received(ann, 'without dan');
assert.deepEqual(await ann.emitWithAck('who', 'all of right'), [bob.id, dan.id].sort());

// Bytes, to one socket of the other server.
const bytes = Buffer.from(Array.from({ length: 5_000 }, (_, index) => index % 256));
ann.emit('whisper', dan.id, bytes);
assert.deepEqual((await once(dan, 'bytes'))[0], bytes);

// Servers among themselves.
assert.deepEqual(await ann.emitWithAck('ask'), ['right']);
assert.deepEqual(await bob.emitWithAck('ask'), ['left']);
const closed = once(bob, 'disconnect');
ann.emit('remove', 'all of right');
await closed;
assert.deepEqual([cid.inbox, dan.inbox], [[], []]);

for (const socket of everybody) socket.close();
for (const { child } of servers) child.disconnect();
