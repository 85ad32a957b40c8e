/**
 * The transport alone: a listener whose server gives every query the same address, without reading it.
 * usage: synthetic.ts PORT batched|plain    prints "ready" once it listens; ends at SIGTERM
 */
import { systemClock } from '../../src/server/base/clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { usualLimits } from '../../src/server/transport/limits/limits.ts';
import { listenerCounters } from '../../src/server/transport/listener-counters.ts';
import type { ListenerParts } from '../../src/server/transport/listener.ts';
import { openListeners } from '../../src/server/transport/open.ts';
import { HEADER } from '../../src/server/wire/iana.ts';
import { NAME_MAX } from '../../src/server/wire/name.ts';
import type { Query } from '../../src/server/transport/query.ts';
import { Reply } from '../../src/server/wire/reply.ts';

const record = [0xc0, HEADER.SIZE, 0, 1, 0, 1, 0, 0, 0, 30, 0, 4, 10, 0, 0, 1];

/** One reply per question length, because the query only affects a reply's length. */
const replies = Array.from({ length: NAME_MAX + 1 }, (_, nameLength) => {
  const bytes = new Uint8Array(HEADER.SIZE + nameLength + 4 + record.length);
  bytes.set([0, 0, 0x84, 0, 0, 1, 0, 1]);
  bytes.set(record, HEADER.SIZE + nameLength + 4);
  return new Reply(bytes, 0, bytes.length, 0, 'synthetic');
});

const [port = '', mode = 'batched'] = process.argv.slice(2);
const parts: ListenerParts = {
  endpoint: { scheme: 'dns', address: '127.0.0.1', port: Number(port) },
  serve: (query: Query) => replies[query.nameLength]!,
  clock: systemClock,
  log: makeLog((line) => console.log(line)),
  terms: { limits: { ...usualLimits, connections: 1000 }, tls: null, proxy: null },
  counters: listenerCounters(null, ''),
};
const listener = openListeners(parts, mode === 'plain' ? 'plain' : 'batched');
await listener.open();
console.log('ready');
process.on('SIGTERM', () => {
  const { received, sent, dropped } = parts.counters('udp');
  const counts = { received: received.value, sent: sent.value, dropped: dropped.value };
  console.log(JSON.stringify(counts));
  process.exit(0);
});
