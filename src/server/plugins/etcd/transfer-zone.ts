/** Provides the records of zones stored in etcd for transfers. */
import { every, type Clock, type Timer } from '../../base/clock.ts';
import type { Counter } from '../../metrics/registry.ts';
import { writeClusterSoa } from '../../wire/cluster-soa.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import { makeQuery } from '../../transport/query.ts';
import { failure } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';
import type { RecordStream, Transferable, TransferSource } from '../../zone/transfer-source.ts';
import { SOA_TTL } from './etcd-answerer.ts';
import { KeyTable } from './key-table.ts';
import { SkydnsLookup, TooMany } from './lookup.ts';
import { nameOf, pathOf } from './path.ts';
import { nameRecord, type AnswerRecord } from './record.ts';
import { Contents, type EtcdReplica } from './replica.ts';
import { HOST } from './skydns-service.ts';
import { Work } from './skydns-records.ts';

export interface EtcdTransferParts {
  readonly replica: EtcdReplica;
  readonly zones: readonly string[];
  readonly clock: Clock;
  /** Minimum and maximum TTL from leases, in seconds. */
  readonly minLeaseTtl: number;
  readonly maxLeaseTtl: number;
  /** Number of names omitted because they have too many keys. */
  readonly omitted: Counter;
}

/**
 * A name with more keys is omitted from transfers. Its records would fill a message, and generating them would take
 * more than a few milliseconds.
 */
const KEYS_OF_NAME_MAX = 1000;
/** Number of milliseconds spent generating records before queries are served again. */
const SLICE_MS = 1;
/** Minimum time between two NOTIFYs in milliseconds, because each makes secondaries transfer the whole zone. */
const TELL_EVERY_MS = 5000;

export function etcdTransfers(parts: EtcdTransferParts): TransferSource {
  const { replica, clock } = parts;
  const zones = parts.zones.map((text) => ({ text, wire: foldName(parseName(text)) }));
  const transferable = ({ text, wire }: (typeof zones)[number]): Transferable => {
    const { serial } = replica.contents;
    return { zone: text, serial, history: [], records: () => streamOf(wire, serial, parts) };
  };
  return {
    find(name, length) {
      const zone = zones.find(
        ({ wire }) => wire.length === length && suffixAt(name, wire, length) === 0,
      );
      return zone === undefined || !replica.contents.listed ? null : transferable(zone);
    },
    watch(tell) {
      let told = -1;
      const look = (): void => {
        const { listed, serial } = replica.contents;
        if (!listed || serial === told) return;
        told = serial;
        for (const zone of zones) tell(transferable(zone));
      };
      look();
      const timer: Timer = every(clock, TELL_EVERY_MS, look);
      return () => timer.cancel();
    },
  };
}

/** Null ends a turn, unless the receiver needs more records. */
type Made = Generator<AnswerRecord | null, void, undefined>;

function streamOf(zone: WireName, serial: number, parts: EtcdTransferParts): RecordStream {
  const made = recordsOf(zone, parts);
  let begun = false;
  let record: AnswerRecord | null = null;
  return {
    next() {
      if (!begun) {
        begun = true;
        return 'record';
      }
      const { done, value } = made.next();
      if (done === true) return 'end';
      record = value;
      return value === null ? 'pause' : 'record';
    },
    get size() {
      return record === null ? SOA_MAX : 10 + record.owner!.length + record.size;
    },
    write(to: MessageWriter) {
      if (record === null) return writeClusterSoa(to, SECTION.answer, zone, serial, SOA_TTL);
      to.open(SECTION.answer, record.owner!, record.type, record.ttl);
      record.write(to);
      to.close();
    },
  };
}

/** Maximum size in bytes, for three names and the numbers. */
const SOA_MAX = 800;

/**
 * Yields the records that queries for each name get. A key belongs to its own name and to all names above it. If a
 * name's only record is an alias, the alias is included. Otherwise, its addresses are included instead, because an
 * alias cannot coexist with other records (RFC 2181 section 10.1). The keys are those that existed when the first
 * record was requested.
 */
function* recordsOf(zone: WireName, parts: EtcdTransferParts): Made {
  const { clock } = parts;
  let begun = clock.now();
  for (const record of everyRecord(new ZoneNames(zone, parts))) {
    if (record !== null) yield record;
    else if (clock.now() - begun > SLICE_MS) {
      yield null;
      begun = clock.now();
    }
  }
}

/** Null means that the transfer may pause here. */
function* everyRecord(names: ZoneNames): Made {
  yield* names.servers();
  for (const name of names.all()) {
    yield null;
    if (name !== null) yield* names.recordsAt(name);
  }
}

const types = [TYPE.A, TYPE.AAAA, TYPE.TXT, TYPE.MX, TYPE.SRV] as const;
const reverseTypes = [TYPE.PTR, TYPE.TXT] as const;
const reverseZones = ['in-addr.arpa.', 'ip6.arpa.'].map((text) => parseName(text));
const elsewhere = failure(RCODE.REFUSED, 'etcd');

class ZoneNames {
  readonly #zone: WireName;
  readonly #parts: EtcdTransferParts;
  readonly #path: string;
  /** A copy of the zone's keys, because etcd changes while a transfer continues. */
  readonly #records: Contents;
  readonly #isReverse: boolean;

  constructor(zone: WireName, parts: EtcdTransferParts) {
    this.#zone = zone;
    this.#parts = parts;
    this.#path = pathOf(zone).path;
    const { contents } = parts.replica;
    const own = contents.at(this.#path);
    const below = contents.below(this.#path, Infinity);
    this.#records = new Contents(KeyTable.of(own, below), contents.leases);
    this.#isReverse = reverseZones.some((one) => suffixAt(zone, one) >= 0);
  }

  /** Servers require one. If there are no keys at `ns.dns`, it is the name in the SOA record. */
  *servers(): Generator<AnswerRecord> {
    const found = this.#answer(this.#zone, TYPE.NS);
    if (found.length > 0) yield* found;
    else {
      const primary = Buffer.concat([parseName('ns.dns.').subarray(0, -1), this.#zone]);
      yield nameRecord(this.#zone, TYPE.NS, primary, 30);
    }
  }

  /** Yields every existing name, from those of keys up to the zone's own. Null stands for an invalid path. */
  *all(): Generator<WireName | null> {
    const seen = new Set<string>();
    if (this.#records.table.size > 0) yield this.#zone;
    for (const [key] of this.#records.table.entries()) {
      for (let end = key.indexOf('/', this.#path.length + 1); ; end = key.indexOf('/', end + 1)) {
        const path = end < 0 ? key : key.slice(0, end);
        if (path.length > this.#path.length && !seen.has(path)) {
          seen.add(path);
          yield nameAt(path);
        }
        if (end < 0) break;
      }
    }
  }

  *recordsAt(name: WireName): Made {
    try {
      const given: AnswerRecord[] = [];
      for (const type of this.#isReverse ? reverseTypes : types) {
        given.push(...this.#answer(name, type));
        // A name with the maximum number of keys takes a millisecond or two.
        yield null;
      }
      const alias = this.#isReverse ? null : this.#alias(name);
      if (alias === null) return yield* given;
      const leads = given.some(({ type }) => type !== TYPE.SRV && type !== TYPE.MX);
      const isInZone = suffixAt(foldName(alias.target!), this.#zone) >= 0;
      if (leads || !isInZone) yield alias;
    } catch (error) {
      if (!(error instanceof TooMany)) throw error;
      this.#parts.omitted.add(1);
    }
  }

  #alias(name: WireName): AnswerRecord | null {
    const [first, second] = this.#lookup().find(name, name.length, TYPE.A) ?? [];
    if (first === undefined || second !== undefined || name.length === this.#zone.length)
      return null;
    const { kind, host, port, text, mail } = first.service;
    if (kind !== HOST.name || text.length > 0 || port > 0 || mail) return null;
    const target = host;
    return suffixAt(foldName(target), name) >= 0
      ? null
      : nameRecord(name, TYPE.CNAME, target, first.ttl);
  }

  #answer(name: WireName, type: number): readonly AnswerRecord[] {
    const { answer } = new Work({
      query: makeQuery(name, type),
      zone: this.#zone,
      lookup: this.#lookup(),
      asked: new Map(),
      ask: () => elsewhere,
    }).run();
    const own = answer.filter((one) => one.type === type);
    // All records in an RRset get the lowest TTL among them (RFC 2181 section 5.2).
    const ttl = Math.min(...own.map((one) => one.ttl));
    return own.map((one) => ({ ...one, owner: name, ttl }));
  }

  #lookup(): SkydnsLookup {
    const { clock, minLeaseTtl, maxLeaseTtl } = this.#parts;
    return new SkydnsLookup({
      records: this.#records,
      now: clock.wall(),
      minLeaseTtl,
      maxLeaseTtl,
      maxSearch: KEYS_OF_NAME_MAX,
    });
  }
}

/**
 * Returns the name for a path, or null if the path has capital letters or wildcard labels, which no query can match.
 */
function nameAt(path: string): WireName | null {
  const name = nameOf(path);
  if (name === null) return null;
  const { path: back, base } = pathOf(name);
  return back === path && base === path ? name : null;
}
