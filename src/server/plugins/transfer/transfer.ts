/** `transfer`: transfers zones to other servers and notifies them of changes. */
import type { Maybe } from '../../base/maybe.ts';
import { zones } from '../../corefile/positions.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { list, setting, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { ip, value, wrongForm } from '../../corefile/word-values.ts';
import { definePlugin, type Next, type Plugin } from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { isServer, parseServer } from '../../zone/server-address.ts';
import { isNewer } from '../../zone/serial.ts';
import { changesSince, onlySoa, transferReply, wholeZone } from '../../zone/transfer-reply.ts';
import { transferSources, type Transferable } from '../../zone/transfer-source.ts';
import type { Listeners } from './notifier.ts';
import { isWithin } from '../../wire/within-zone.ts';
import type { RemoteServer } from '../../transport/one-exchange.ts';

/** A server that may transfer a zone and is notified of changes, or any server. */
type Receiver = RemoteServer | '*';

/** `IP`, `IP:PORT`, `[v6]:PORT`, or `*`. */
const receiver = value<Receiver>('ADDRESS', ({ text }) => {
  if (text === '*') return '*';
  return (
    parseServer(text) ??
    wrongForm(
      `not an IP address: "${text}"`,
      'Write an address with an optional port (192.0.2.10, [2001:db8::1]:5300), or * for all clients.',
    )
  );
});

/** Returns a setting that must not be repeated. */
function once<T>(property: PropertySchema<T | null>): PropertySchema<T | null> {
  return {
    ...property,
    take(line, before) {
      if (before !== null) line.refuse(`${property.words[0]} already specified`);
      return property.take(line, before);
    },
  };
}

const syntax = directive({
  name: 'transfer',
  summary: 'transfers zones to other servers and notifies them of changes',
  repeat: 'gather',
  args: { zones: zones({ help: 'zones that may be transferred, including zones under them' }) },
  properties: {
    to: list('to', receiver, {
      help: 'servers that may transfer the zones and are notified of changes; `*` allows all clients but notifies none',
    }),
    source: once(
      setting('source', ip('ADDRESS'), {
        help: 'source address of notifications',
      }),
    ),
  },
  check: (options, at) =>
    options.some(({ to }) => to.length === 0)
      ? [pluginProblem('transfer', at, "'to' is required")]
      : [],
});

type TransferOptions = Options<typeof syntax>;

/** Sent by a worker that now answers from this version of a zone. */
interface ZoneSeen {
  readonly zone: string;
  readonly serial: number;
}

const notAllowed = failure(RCODE.REFUSED, 'transfer');
const malformed = failure(RCODE.FORMERR, 'transfer');

export const transfer: Plugin = definePlugin({
  syntax,
  async control(options, context) {
    // Imported here because workers never need it.
    const { Notifier } = await import('./notifier.ts');
    const { clock, random, log, metrics } = context;
    const sent = metrics.counter(
      'ndots_transfer_notifies_total',
      'Number of notifications about changed zones sent to other servers.',
      ['result'],
    );
    const notifier = new Notifier({ clock, random, log, sent });
    const longest = chooser(options);
    context.onMessage((message) => {
      const { zone, serial } = message as ZoneSeen;
      const chosen = longest(zone);
      if (chosen !== null) notifier.changed(zone, serial, listenersOf(chosen));
    });
    context.onStop(() => notifier.stop());
  },

  setup(options, context, next): Next {
    const { writer, log } = context;
    const transfers = context.metrics.counter(
      'ndots_transfers_total',
      'Number of transfers started to other servers, by kind: full, incremental, or current (nothing has changed).',
      ['kind'],
    );
    const refusals = context.metrics.counter(
      'ndots_transfer_refusals_total',
      'Number of transfers that were refused.',
    );
    const choices = options.map((one) => ({ one, match: new ZoneMatch(one.zones) }));

    const find = (query: Query): Transferable | null => {
      for (const source of context.find(transferSources)) {
        const zone = source.find(query.folded, query.nameLength);
        if (zone !== null) return zone;
      }
      return null;
    };

    const give = (query: Query, zone: Transferable): Reply => {
      const incremental = query.type === TYPE.IXFR;
      const serial = incremental ? askedSerial(query) : 0;
      if (serial === null) return malformed;
      const current = incremental && !isNewer(zone.serial, serial);
      const changes = incremental && !current ? changesSince(zone, serial) : null;
      // A datagram has room only for the SOA record, so the client retries over TCP (RFC 1995 section 2).
      const stream =
        current || query.proto === 'udp' ? onlySoa(zone) : (changes ?? wholeZone(zone));
      const kind = current ? 'current' : changes === null ? 'full' : 'incremental';
      if (query.proto !== 'udp' || current) transfers.with(kind).add(1);
      const to = query.client;
      return transferReply(query, 'transfer', writer, stream, (records) => {
        const what = current
          ? `Outgoing noop, incremental transfer for up to date zone "${zone.zone}"`
          : `Outgoing ${changes === null ? '' : 'incremental '}transfer of ${records} records of zone "${zone.zone}"`;
        if (query.proto !== 'udp' || current)
          log.info(`${what} to ${to} for ${zone.serial} SOA serial`);
      });
    };

    context.onStart(() => {
      for (const source of context.find(transferSources)) {
        const end = source.watch(({ zone, serial }) =>
          context.post({ zone, serial } satisfies ZoneSeen),
        );
        context.onStop(end);
      }
    });

    return (query): Maybe<Reply> => {
      const { type, proto } = query;
      if ((type !== TYPE.AXFR && type !== TYPE.IXFR) || !query.isStandard) return next(query);
      const stream = proto === 'tcp' || proto === 'tls' || proto === 'internal';
      if (!stream && (type === TYPE.AXFR || proto !== 'udp')) return refuse();
      let chosen: TransferOptions[number] | null = null;
      let zoneLength = -1;
      for (const { one, match } of choices) {
        const zone = match.find(query);
        if (zone === null || zone.length <= zoneLength) continue;
        chosen = one;
        zoneLength = zone.length;
      }
      if (chosen === null) return next(query);
      if (!allows(chosen, query)) return refuse();
      const zone = find(query);
      return zone === null ? next(query) : give(query, zone);
    };

    function refuse(): Reply {
      refusals.add(1);
      return notAllowed;
    }
  },
});

function allows({ to }: TransferOptions[number], query: Query): boolean {
  return to.some((one) => one === '*' || isServer(one, query.peer, query.peerAt, query.family));
}

/** Returns the client's serial, which is in the only SOA record in the authority section, or null if there is none. */
function askedSerial(query: Query): number | null {
  let found: number | null = null;
  let count = 0;
  for (records.over(query.bytes, query.start, query.end); records.next();) {
    if (records.section !== SECTION.authority) continue;
    if (++count > 1) return null;
    const { bytes, dataAt, dataLength } = records;
    // An SOA has two names followed by five four-byte numbers, the first of which is the serial.
    if (records.type === TYPE.SOA && dataLength > SERIAL_BEFORE_END)
      found = new DataView(bytes.buffer, bytes.byteOffset).getUint32(
        dataAt + dataLength - SERIAL_BEFORE_END,
      );
  }
  return found;
}

const records = new Records();
const SERIAL_BEFORE_END = 20;

function chooser(options: TransferOptions): (zone: string) => TransferOptions[number] | null {
  return (zone) => {
    let found: TransferOptions[number] | null = null;
    let length = -1;
    for (const one of options) {
      for (const own of one.zones) {
        if (!isWithin(zone, own) || own.length <= length) continue;
        found = one;
        length = own.length;
      }
    }
    return found;
  };
}

function listenersOf({ to, source }: TransferOptions[number]): Listeners {
  return { to: to.filter((one) => one !== '*'), source: source ?? '' };
}
