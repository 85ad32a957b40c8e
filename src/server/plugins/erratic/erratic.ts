/** `erratic`: deliberately bad answers. */
import { sleep } from '../../base/clock.ts';
import { chained, fields, flag } from '../../corefile/properties.ts';
import { optional } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, integer, value, Wrong, wrong } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { searchLists } from '../../engine/contract/ports.ts';
import { FLAG, isAddressType, RCODE, TYPE } from '../../wire/iana.ts';
import { joinNames, parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, silence, type Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';

const plain = integer('AMOUNT', { max: 0x7fff_ffff });

const amount = value('AMOUNT', (word) => {
  const count = plain.read(word);
  if (count instanceof Wrong) return count;
  return count < 0 ? wrong(`illegal amount value given ${JSON.stringify(word.text)}`) : count;
});

const syntax = directive({
  name: 'erratic',
  summary: 'misbehaves deliberately so that you can test clients',
  repeat: 'merge',
  unread: ['words'],
  properties: {
    drop: fields(
      'drop',
      { every: optional(amount) },
      { help: 'drop every AMOUNTth query (default 2; 0: none)' },
    ),
    truncate: fields(
      'truncate',
      { every: optional(amount) },
      {
        help: 'set TC if none of the bits of AMOUNT are set in the query count (default 2: two replies with TC, then two without)',
      },
    ),
    delay: fields(
      'delay',
      { every: optional(amount), forMs: optional(duration('DURATION')) },
      { help: 'delay every AMOUNTth reply (default 2) by DURATION (default 100ms)' },
    ),
    large: chained(flag('large', { help: 'answer A queries with 30 copies of the record' })),
  },
});

const address4 = Uint8Array.of(192, 0, 2, 53);
const address6 = Uint8Array.of(0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x53);
const LARGE = 30;
/** Search path for `autopath @erratic`. */
const SEARCH = ['a.example.org.', 'b.example.org.'];
/** Ready once this many queries have arrived. */
const READY_FROM = 3;
const READY_BELOW = 5;

export const erratic: Plugin = definePlugin({
  syntax,
  control(_options, context) {
    const counts = new Map<number, number>();
    context.onMessage((message, worker) => counts.set(worker, message as number));
    context.readiness(() => {
      const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
      return total >= READY_FROM && total < READY_BELOW;
    });
  },

  setup(options, context) {
    const { writer, clock } = context;
    const truncate = options.truncate === null ? 0 : (options.truncate.every ?? 2);
    const delay = options.delay === null ? 0 : (options.delay.every ?? 2);
    const delayMs = options.delay?.forMs ?? 100;
    // If other options are set, queries are dropped only if `drop` is set too.
    const drop = options.drop?.every ?? (delay > 0 || truncate > 0 ? 0 : 2);
    context.offer(searchLists, { plugin: 'erratic', domains: SEARCH });
    let count = 0;
    return (query) => {
      const number = count++;
      if (count <= READY_BELOW) context.post(count);
      if (drop > 0 && number % drop === 0) return silence;
      const cut = truncate > 0 && (number & truncate) === 0;
      const late = delay > 0 && number % delay === 0;
      if (!late) return write(writer, query, cut, options.large);
      const kept = query.keep();
      return sleep(clock, delayMs).then(() => write(writer, kept, cut, options.large));
    };
  },
});

function write(writer: MessageWriter, query: Query, cut: boolean, large: boolean): Reply {
  const { type } = query;
  if (!isAddressType(type) && type !== TYPE.AXFR) return failure(RCODE.SERVFAIL, 'erratic');
  writer.reply(query, FLAG.AA | (cut && type !== TYPE.AXFR ? FLAG.TC : 0));
  if (type === TYPE.AXFR) writeZone(writer, query.wireName, !cut);
  else if (type === TYPE.AAAA) writer.record(SECTION.answer, null, type, 0, address6);
  else
    for (let i = 0; i < (large ? LARGE : 1); i++)
      writer.record(SECTION.answer, null, type, 0, address4);
  return writer.finish(RCODE.NOERROR, 'erratic');
}

/** Writes a transfer of a zone with two name servers. If it is truncated, the final SOA is missing. */
function writeZone(writer: MessageWriter, zone: WireName, whole: boolean): void {
  const servers = ['a.', 'b.']
    .map((label) => joinNames(parseName(label), zone))
    .filter((name) => name !== null);
  writeSoa(writer);
  for (const server of servers) writer.named(SECTION.answer, null, TYPE.NS, 0, server);
  for (const server of servers) writer.record(SECTION.answer, server, TYPE.AAAA, 0, address6);
  if (whole) writeSoa(writer);
}

function writeSoa(writer: MessageWriter): void {
  const [server, mailbox] = ['ns.example.org.', 'hostmaster.example.org.'].map(parseName);
  writer.soa(SECTION.answer, null, 0, server!, mailbox!, [1, 7200, 3600, 1_209_600, 3600]);
}
