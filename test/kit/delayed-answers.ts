/**
 * A name server that delays its answers, and a program that accepts connections: `node delayed-answers.ts DELAY_MS
 * ADDRESS`. A queries return the address, and other types have no records.
 */
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

const [delay = '0', address = '10.98.2.2'] = process.argv.slice(2);
const socket = createSocket('udp4');
socket.on('message', (query, from) => {
  let at = 12;
  while (query[at]! > 0) at += query[at]! + 1;
  at += 5;
  const isA = query.readUInt16BE(at - 4) === 1;
  const head = Buffer.from(query.subarray(0, at));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isA ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  const data = address.split('.').map(Number);
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, ...data];
  const reply = isA ? Buffer.concat([head, Buffer.from(record)]) : head;
  const send = (): void => socket.send(reply, from.port, from.address);
  if (delay === '0') send();
  else setTimeout(send, Number(delay));
});
createServer((connection) => {
  connection.on('error', () => undefined).resume();
  connection.end('HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n');
}).listen(80, '0.0.0.0', () => socket.bind(53, '0.0.0.0', () => console.log('answers')));
