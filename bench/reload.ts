/**
 * Twenty reloads under a steady load, during which no query may be lost or answered incorrectly. Half of them are
 * triggered by a file change, and half by SIGUSR1.
 */
import { createSocket } from 'node:dgram';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answered, question } from '../test/kit/child.ts';
import { figure, smoke } from './kit/figures.ts';
import { kubeadmCorefile, ndots, services, workDirectory } from './kit/peers.ts';

const RATE = smoke ? 2000 : 20_000;
const RELOADS = smoke ? 3 : 20;
const directory = workDirectory();
const { manifests, names } = services(directory, 1000);
const list = [...names];
const corefile = kubeadmCorefile(5600, manifests).replace('reload\n', 'reload 2s 0s\n');
const server = ndots(corefile, directory, { cpu: 0 });
await answered(5600, list[0]![0]);

let sent = 0;
let right = 0;
let wrong = 0;
const waiting = new Map<number, string>();
const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 });
socket.on('message', (reply) => {
  const id = reply.readUInt16BE(0);
  const expected = waiting.get(id);
  waiting.delete(id);
  if (expected === undefined || (reply.readUInt16BE(2) & 15) !== 0 || reply.readUInt16BE(6) !== 1)
    wrong++;
  else if ([...reply.subarray(reply.length - 4)].join('.') === expected) right++;
  else wrong++;
});
let stop = false;
async function send(): Promise<void> {
  const begin = performance.now();
  while (!stop) {
    const due = Math.floor(((performance.now() - begin) / 1000) * RATE);
    while (sent < due) {
      const [name, address] = list[sent % list.length]!;
      const id = sent++ & 0xffff;
      if (waiting.has(id)) continue; // Still unanswered after 65 536 queries, so it counts as lost below.
      waiting.set(id, address);
      socket.send(question(name, 1, id), 5600, '127.0.0.1');
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
const sending = send();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const file = /Corefile-\d+/.exec(readFileSync(`/proc/${server.pid}/cmdline`, 'utf8'))?.[0];
const path = join(directory, file!);
for (let nth = 0; nth < RELOADS; nth++) {
  await pause(smoke ? 300 : 500);
  writeFileSync(path, corefile.replace('ttl 30', `ttl ${31 + nth}`));
  server.signal('SIGUSR1');
}
await pause(1000);
stop = true;
await sending;
await pause(1000);
const reloads = server.output().match(/Reloading complete/g)?.length ?? 0;
console.log(`${reloads} reloads, ${sent} queries at ${RATE}/s: ${right} right`);
figure('queries answered wrongly over reloads', wrong, '', { atMost: 0 });
figure('queries lost over reloads', waiting.size, '', { atMost: 0 });
socket.close();
await server.stop();
process.exit(wrong + waiting.size === 0 && reloads >= RELOADS ? 0 : 1);
