/**
 * A client that queries one name repeatedly from one socket: run as `node query-stream.ts SERVER NAME PERIOD_MS`. When
 * its standard input ends, it prints a JSON list of [sent at, answered at or 0, last byte of the address]. Times are
 * milliseconds since the epoch.
 */
import { createSocket } from 'node:dgram';
import { question } from './child.ts';

const [server = '', name = '', period = '10'] = process.argv.slice(2);
const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4');
const log: [number, number, number][] = [];
socket.on('message', (reply) => {
  const entry = log[reply.readUInt16BE(0)];
  if (entry === undefined || entry[1] !== 0) return;
  entry[1] = Date.now();
  entry[2] = reply.readUInt16BE(6) > 0 ? reply.at(-1)! : 0;
});
socket.on('error', () => undefined);
const timer = setInterval(() => {
  if (log.length === 65_536) return;
  const query = question(name, 1, log.length);
  log.push([Date.now(), 0, 0]);
  socket.send(query, 53, server, () => undefined);
}, Number(period));
process.stdin.on('end', () => {
  clearInterval(timer);
  // Replies that are still in flight are counted.
  setTimeout(() => {
    process.stdout.write(`${JSON.stringify(log)}\n`, () => process.exit(0));
  }, 300);
});
process.stdin.resume();
process.stdout.write('asking\n');
