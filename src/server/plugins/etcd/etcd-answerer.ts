/** Builds replies from SkyDNS records, including result codes, fallthrough and SOA. */
import type { Maybe } from '../../base/maybe.ts';
import type { Clock } from '../../base/clock.ts';
import type { Counter } from '../../metrics/registry.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import { ReplyCache, type Dependency } from '../../engine/contract/reply-cache.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { writeClusterSoa } from '../../wire/cluster-soa.ts';
import { EDE, FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { parseName, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';
import { SkydnsLookup, TooMany, type RecordSource } from './lookup.ts';
import { writeRecords } from './record.ts';
import { Work, type ForeignReplies, type Worked } from './skydns-records.ts';

/** TTL and minimum of the SOA record in seconds, as in CoreDNS. */
export const SOA_TTL = 30;
/** The plugin's name in replies. */
const PLUGIN = 'etcd';
/** Maximum number of times an answer is computed again after a lookup, which limits chains of names. */
const TRIES_MAX = 24;

export interface AnswerSource {
  open(): RecordsOfQuery;
  /** The version that cached answers depend on, or null if answers are not cached. */
  readonly lasting: Dependency | null;
  /** True once everything has been listed, so a name that is not found does not exist. */
  readonly listed: boolean;
  /** Unix seconds. */
  readonly serial: number;
}

export interface RecordsOfQuery extends RecordSource {
  /** The pending read from etcd, or null. It rejects if etcd does not answer. */
  wait(): Promise<void> | null;
}

export interface EtcdAnswererParts {
  readonly source: AnswerSource;
  readonly zones: readonly string[];
  /** If a name under one of these is not found, the query is passed on; null disables this. */
  readonly fallthrough: readonly string[] | null;
  /** Minimum and maximum TTL from leases, in seconds. */
  readonly minLeaseTtl: number;
  readonly maxLeaseTtl: number;
  readonly maxSearch: number;
  readonly clock: Clock;
  readonly writer: MessageWriter;
  readonly ask: Next;
  readonly next: Next;
  /** Number of queries for names with more than `max_search` keys. */
  readonly refused: Counter;
}

export class EtcdAnswerer {
  readonly #parts: EtcdAnswererParts;
  readonly #here: ZoneMatch;
  readonly #passed: ZoneMatch | null;
  readonly #zones: ReadonlyMap<string, WireName>;
  readonly #replies = new ReplyCache();

  constructor(parts: EtcdAnswererParts) {
    this.#parts = parts;
    this.#here = new ZoneMatch(parts.zones);
    this.#passed = parts.fallthrough === null ? null : new ZoneMatch(parts.fallthrough);
    this.#zones = new Map(parts.zones.map((zone) => [zone, parseName(zone.toLowerCase())]));
  }

  readonly link: Next = (query) => {
    const zone = this.#here.find(query);
    if (zone === null) return this.#parts.next(query);
    if (query.type === TYPE.AXFR || query.type === TYPE.IXFR) return failure(RCODE.REFUSED, PLUGIN);
    const known = this.#replies.get(query);
    if (known !== null) return known;
    return this.#try(query, this.#zones.get(zone)!, new Map(), this.#parts.source.open(), 0);
  };

  #try(
    query: Query,
    zone: WireName,
    asked: ForeignReplies,
    records: RecordsOfQuery,
    tries: number,
  ): Maybe<Reply> {
    const { ask, clock, minLeaseTtl, maxLeaseTtl, maxSearch, refused } = this.#parts;
    const now = clock.wall();
    const lookup = new SkydnsLookup({ records, now, minLeaseTtl, maxLeaseTtl, maxSearch });
    const work = new Work({ query, zone, lookup, asked, ask });
    let worked: Worked;
    try {
      worked = work.run();
    } catch (error) {
      if (!(error instanceof TooMany)) throw error;
      refused.add(1);
      return this.#failed(query, zone, tooManyErrors);
    }
    const waits = records.wait();
    if (waits === null && work.pending.length === 0) {
      // External records have their own TTLs, and TTLs from leases decrease.
      const lasting = asked.size === 0 && !lookup.leased ? this.#parts.source.lasting : null;
      return this.#reply(query, zone, worked, work.truncated, lasting);
    }
    if (tries >= TRIES_MAX) return this.#failed(query, zone, tooManyErrors);
    const kept = query.keep();
    const all = waits === null ? work.pending : [waits, ...work.pending];
    return Promise.all(all).then(
      () => this.#try(kept, zone, asked, records, tries + 1),
      (error: unknown) =>
        this.#failed(kept, zone, awayErrors).with({
          cause: error instanceof Error ? error : null,
        }),
    );
  }

  #reply(
    query: Query,
    zone: WireName,
    worked: Worked,
    truncated: boolean,
    lasting: Dependency | null,
  ): Maybe<Reply> {
    const offered = (reply: Reply): Reply =>
      lasting === null ? reply : this.#replies.offer(query, reply, lasting);
    const { writer, source, next } = this.#parts;
    const apex = query.nameLength === zone.length;
    // The zone's SOA exists even if the zone is empty.
    if (query.type === TYPE.SOA && apex && source.listed) {
      writer.reply(query, FLAG.AA);
      this.#writeSoa(query, zone, SECTION.answer);
      return offered(writer.finish(RCODE.NOERROR, PLUGIN));
    }
    const { answer, additional } = worked;
    // It is not known yet whether the name exists, so the next plugin's answer could be wrong.
    if (answer.length === 0 && !source.listed) return this.#failed(query, zone, notReadyErrors);
    if (!worked.exists && this.#passed?.holds(query) === true) return next(query);
    if (answer.length === 0) {
      // The zone itself always exists.
      const rcode = worked.exists || apex ? RCODE.NOERROR : RCODE.NXDOMAIN;
      return offered(this.#negative(query, zone, rcode));
    }
    const write = (flags: number): boolean => {
      writer.reply(query, FLAG.AA | flags);
      return (
        writeRecords(writer, SECTION.answer, answer) &&
        writeRecords(writer, SECTION.additional, additional)
      );
    };
    if (!write(truncated ? FLAG.TC : 0)) {
      writer.abandon();
      write(FLAG.TC);
    }
    return offered(writer.finish(RCODE.NOERROR, PLUGIN));
  }

  #negative(query: Query, zone: WireName, rcode: number): Reply {
    this.#parts.writer.reply(query, FLAG.AA);
    this.#writeSoa(query, zone, SECTION.authority);
    return this.#parts.writer.finish(rcode, PLUGIN);
  }

  #failed(query: Query, zone: WireName, errors: Reply['errors']): Reply {
    return this.#negative(query, zone, RCODE.SERVFAIL).with({ errors });
  }

  #writeSoa(
    query: Query,
    { length }: WireName,
    section: typeof SECTION.answer | typeof SECTION.authority,
  ): void {
    const { writer, source } = this.#parts;
    const end = query.start + 12 + query.nameLength;
    const zone = query.bytes.subarray(end - length, end);
    writeClusterSoa(writer, section, zone, source.serial, SOA_TTL);
  }
}

const notReadyErrors = [
  { code: EDE.NOT_READY, text: 'etcd has not been listed completely yet' },
] as const;
const awayErrors = [{ code: EDE.NETWORK_ERROR, text: 'etcd does not answer' }] as const;
const tooManyErrors = [
  { code: EDE.PROHIBITED, text: 'the name includes more keys than one query may search' },
] as const;
