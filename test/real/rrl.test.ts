/** Response rate limiting compared with BIND's. Both must send the same replies to the same burst of questions. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseName } from '../../src/server/wire/name.ts';
import { makeQuery } from '../../src/server/transport/query.ts';
import { hasProgram } from '../kit/real-resolver.ts';
import { freePorts } from '../kit/free-ports.ts';
import { serveProcess } from '../kit/serve-process.ts';
import { startNamed } from '../kit/zone-servers.ts';

const zone = `$TTL 300
@ IN SOA ns host 1 7200 3600 86400 60
@ IN NS ns
ns IN A 192.0.2.53
www IN A 192.0.2.1
child IN NS ns.child
ns.child IN A 192.0.2.54
*.wild IN A 192.0.2.2
`;

/** The replies to one burst: complete, truncated, missing. */
interface Burst {
  readonly whole: number;
  readonly cut: number;
  readonly lost: number;
}

/** Sends all questions at once over one socket, then waits until no more replies arrive. */
async function burst(port: number, messages: readonly Uint8Array[]): Promise<Burst> {
  const socket = createSocket('udp4');
  let whole = 0;
  let cut = 0;
  let quiet = Date.now() + 700;
  socket.on('message', (reply) => {
    quiet = Date.now() + 700;
    if ((reply[2]! & 2) !== 0) cut++;
    else whole++;
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  messages.forEach((message, id) => {
    message[1] = id + 1;
    socket.send(message, port, '127.0.0.1');
  });
  while (Date.now() < quiet && whole + cut < messages.length)
    await new Promise((resolve) => setTimeout(resolve, 50));
  socket.close();
  return { whole, cut, lost: messages.length - whole - cut };
}

const many = (count: number, name: (i: number) => string, type: number): Uint8Array[] =>
  Array.from({ length: count }, (_, i) => {
    const { bytes, start, end } = makeQuery(parseName(name(i)), type, 1);
    return bytes.slice(start, end);
  });

/** The same messages with another opcode. */
const withOpcode = (messages: readonly Uint8Array[], opcode: number): readonly Uint8Array[] =>
  messages.map((message) => message.with(2, opcode << 3));

/** Bursts of a single kind, far enough above 5 per second that a slow machine makes little difference. */
const bursts: Readonly<Record<string, readonly Uint8Array[]>> = {
  answers: many(45, () => 'www.example.org.', 1),
  'no data': many(45, () => 'www.example.org.', 28),
  'invented names': many(45, (i) => `random-${i}.example.org.`, 1),
  'names of a wildcard': many(45, (i) => `name-${i}.wild.example.org.`, 1),
  'no data of a wildcard': many(45, (i) => `name-${i}.wild.example.org.`, 28),
  referrals: many(45, (i) => `host-${i}.child.example.org.`, 1),
  refusals: many(45, (i) => `host-${i}.example.net.`, 1),
  'an opcode that is not implemented': withOpcode(
    many(45, () => 'www.example.org.', 1),
    2,
  ),
};

describe(
  'response rate limiting compared with BIND',
  { skip: !hasProgram('named') && 'needs named' },
  () => {
    for (const slip of [2, 1, 0]) {
      test(`slip ${slip}: bursts of every kind get as many whole, cut and no replies`, async (t) => {
        const directory = mkdtempSync(join(tmpdir(), 'ndots-rrl-'));
        t.after(() => rmSync(directory, { recursive: true }));
        writeFileSync(join(directory, 'db.example.org'), zone);
        const [port] = await freePorts(1);
        const limits = `rate-limit { responses-per-second 5; slip ${slip}; window 15; };`;
        const bind = await startNamed(
          directory,
          port!,
          `zone "example.org" { type primary; file "${join(directory, 'db.example.org')}"; };`,
          limits,
        );
        t.after(() => bind.child.stop());
        const ours = await serveProcess(
          `rrl {\n responses-per-second 5\n slip-ratio ${slip}\n}\nfile ${join(directory, 'db.example.org')} example.org`,
        );
        t.after(() => ours.stop());
        for (const [kind, messages] of Object.entries(bursts)) {
          const theirs = await burst(bind.port, messages);
          const found = await burst(ours.port, messages);
          t.diagnostic(`${kind}: BIND ${JSON.stringify(theirs)}, ndots ${JSON.stringify(found)}`);
          // If a burst spans two seconds, replies for one more second are allowed.
          for (const key of ['whole', 'cut', 'lost'] as const)
            assert.ok(
              Math.abs(found[key] - theirs[key]) <= 6,
              `${kind}: ${key} ${found[key]}, BIND ${theirs[key]}`,
            );
        }
      });
    }
  },
);
