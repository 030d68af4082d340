// A Socket.IO server that socket_io.js starts: node socket_io_server.js PORT ADAPTER NAME.

import { Server } from 'socket.io';
import { createAdapter, createShardedAdapter } from '@socket.io/redis-adapter';
import { Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';

const [port, adapterName, name] = process.argv.slice(2);
const url = `redis://127.0.0.1:${port}`;
const connect = {
  node: () => createClient({ url }),
  cluster: () => createCluster({ rootNodes: [{ url }] }),
  ioredis: () => new Redis(url),
};
const [kind, clientName] = adapterName.split('-');
const publisher = connect[clientName]();
const subscriber = publisher.duplicate();
for (const client of [publisher, subscriber]) {
  client.on('error', (error) => { throw error; });
  if (clientName !== 'ioredis') await client.connect();
}
const adapter = kind === 'sharded' ? createShardedAdapter(publisher, subscriber) : createAdapter(publisher, subscriber);

const io = new Server({ adapter });
io.on('connection', (socket) => {
  socket.join(`all of ${name}`);
  socket.on('join', async (room, done) => { await socket.join(room); done(); });
  socket.on('leave', async (room, done) => { await socket.leave(room); done(); });
  socket.on('shout', (text) => { io.emit('message', text); });
  socket.on('say', (room, text) => { socket.to(room).emit('message', text); });
  socket.on('whisper', (id, bytes) => { io.to(id).emit('bytes', bytes); });
  socket.on('who', async (room, answer) => {
    answer((await io.in(room).fetchSockets()).map(({ id }) => id).sort());
  });
  socket.on('servers', async (answer) => { answer(await io.of('/').adapter.serverCount()); });
  socket.on('ask', async (answer) => {
    answer(await new Promise((resolve, reject) => {
      io.serverSideEmit('name', (error, names) => (error ? reject(error) : resolve(names)));
    }));
  });
  socket.on('remove', (room) => { io.in(room).disconnectSockets(); });
});
io.on('name', (answer) => { answer(name); });
io.listen(0);
process.send({ port: io.httpServer.address().port });
process.on('disconnect', () => { process.exit(); });
