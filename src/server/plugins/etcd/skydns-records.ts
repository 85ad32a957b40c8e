/** SkyDNS's rules for which records answer a question. */
import { isLater, type Maybe } from '../../base/maybe.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import { TYPE } from '../../wire/iana.ts';
import { sentAnswers } from '../../wire/message.ts';
import { foldName, parseName, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import type { FoundService, SkydnsLookup } from './lookup.ts';
import { nameOf, stripped } from './path.ts';
import {
  addressRecord,
  foreignRecord,
  mxRecord,
  nameRecord,
  srvRecord,
  textRecord,
  type AnswerRecord,
} from './record.ts';
import { HOST, type SkydnsService } from './skydns-service.ts';

/** Names that the rest of the server looks up, with their results; a promise while the lookup is in progress. */
export type ForeignReplies = Map<string, Reply | null | Promise<void>>;

export interface WorkParts {
  readonly query: Query;
  /** In wire form and lower case. */
  readonly zone: WireName;
  readonly lookup: SkydnsLookup;
  /** Carried over between attempts. */
  readonly asked: ForeignReplies;
  readonly ask: Next;
}

/** A query's answer; `exists` is false if the name does not exist. */
export interface Worked {
  readonly exists: boolean;
  readonly answer: readonly AnswerRecord[];
  readonly additional: readonly AnswerRecord[];
}

/** Maximum number of additional CNAMEs after the first. */
const CHAIN_MAX = 10;
/** Maximum number of external names to look up per query. */
const ELSEWHERE_MAX = 128;
const none: readonly AnswerRecord[] = [];
const absent: Worked = { exists: false, answer: none, additional: none };
const apexDns = parseName('apex.dns.');
const nsDns = parseName('ns.dns.');

/**
 * Computes the answer to one query by SkyDNS's rules, without ever waiting. Any lookups it needs are added to
 * `pending`, and the computation is repeated once they are done.
 */
export class Work {
  readonly #parts: WorkParts;
  readonly #name: Uint8Array;
  readonly pending: Promise<void>[] = [];
  /** Records from external replies, because several keys may refer to the same name. */
  readonly #foreign = new Map<Reply, readonly AnswerRecord[]>();
  truncated = false;

  constructor(parts: WorkParts) {
    this.#parts = parts;
    this.#name = parts.query.folded.slice(0, parts.query.nameLength);
  }

  /** @throws TooMany */
  run(): Worked {
    const { type } = this.#parts.query;
    switch (type) {
      case TYPE.A:
      case TYPE.AAAA:
      case TYPE.TXT:
        return asked(this.#records(this.#name, null, type, []));
      case TYPE.CNAME:
        return this.#alias();
      case TYPE.PTR:
        return this.#pointers();
      case TYPE.SRV:
        return this.#services();
      case TYPE.MX:
        return this.#mailers();
      case TYPE.NS:
        return this.#isApex(this.#name) ? this.#nameServers() : this.#nothing();
      default:
        return this.#nothing();
    }
  }

  #isApex(name: Uint8Array): boolean {
    return name.length === this.#parts.zone.length && suffixAt(name, this.#parts.zone) === 0;
  }

  #find(name: Uint8Array, type: number, exact = false): readonly FoundService[] | null {
    return this.#parts.lookup.find(name, name.length, type, exact);
  }

  #belowZone(labels: WireName): WireName {
    return Buffer.concat([labels.subarray(0, -1), this.#parts.zone]);
  }

  /** Checks whether a name exists that has no records of this type. */
  #nothing(): Worked {
    return this.#parts.lookup.exists(this.#name) ? { ...absent, exists: true } : absent;
  }

  /** Returns a name's addresses or texts. The zone's own addresses are at `apex.dns`, if there are any. */
  #records(
    name: Uint8Array,
    owner: WireName | null,
    type: number,
    before: readonly WireName[],
  ): AnswerRecord[] | null {
    const isOfApex = type !== TYPE.TXT && this.#isApex(name);
    const ofApex = isOfApex ? this.#find(this.#belowZone(apexDns), type) : null;
    const found = ofApex ?? this.#find(name, type);
    if (found === null) return null;
    const records: AnswerRecord[] = [];
    const seen = new Set<string>();
    const kind = type === TYPE.A ? HOST.v4 : HOST.v6;
    for (const one of found) {
      const { service, ttl } = one;
      if (type === TYPE.TXT && isText(service)) {
        if (isNew(seen, service.text)) records.push(textRecord(owner, service.text, ttl));
      } else if (service.kind === HOST.name)
        records.push(...this.#follow(name, owner, one, type, before));
      else if (type !== TYPE.TXT && service.kind === kind && isNew(seen, service.host))
        records.push(addressRecord(owner, service.host, ttl));
    }
    return records;
  }

  /**
   * Returns a CNAME and its target's records, or nothing if the zone has no CNAME. A target at or below the name would
   * be a loop, because the name includes everything below it.
   */
  #follow(
    name: Uint8Array,
    owner: WireName | null,
    { service, ttl }: FoundService,
    type: number,
    before: readonly WireName[],
  ): readonly AnswerRecord[] {
    const target = service.host;
    const folded = foldName(target);
    if (suffixAt(folded, name) >= 0 || before.length > CHAIN_MAX) return none;
    if (before.some((one) => Buffer.compare(one, target) === 0)) return none;
    const alias = nameRecord(owner, TYPE.CNAME, target, ttl);
    if (suffixAt(folded, this.#parts.zone) >= 0) {
      const next = this.#records(folded, target, type, [...before, target]) ?? none;
      return next.length === 0 ? none : [alias, ...next];
    }
    return [alias, ...this.#elsewhere(target, type)];
  }

  /** Returns the whole server's answer for an external name, or nothing until it has arrived. */
  #elsewhere(target: WireName, type: number): readonly AnswerRecord[] {
    const { asked: known, ask, query } = this.#parts;
    const key = `${type} ${Buffer.from(target).toString('latin1')}`;
    let reply = known.get(key);
    if (reply === undefined) {
      if (known.size >= ELSEWHERE_MAX) return none;
      reply = settled(ask(query.asking(target, type)), known, key);
      known.set(key, reply);
    }
    if (reply instanceof Promise) {
      this.pending.push(reply);
      return none;
    }
    if (reply === null || reply.bare) return none;
    if (reply.truncated) this.truncated = true;
    let records = this.#foreign.get(reply);
    if (records === undefined)
      this.#foreign.set(reply, (records = sentAnswers(reply).map(foreignRecord)));
    return records;
  }

  #alias(): Worked {
    const found = this.#find(this.#name, TYPE.CNAME, true);
    if (found === null) return absent;
    const [first] = found;
    const is = first !== undefined && first.service.kind === HOST.name;
    return asked(is ? [nameRecord(null, TYPE.CNAME, first.service.host, first.ttl)] : none);
  }

  #pointers(): Worked {
    const found = this.#find(this.#name, TYPE.PTR, true);
    if (found === null) return absent;
    const answer: AnswerRecord[] = [];
    const seen = new Set<string>();
    for (const { service, ttl } of found) {
      if (service.kind === HOST.name && isNew(seen, service.host))
        answer.push(nameRecord(null, TYPE.PTR, service.host, ttl));
    }
    return asked(answer);
  }

  #services(): Worked {
    const found = this.#find(this.#name, TYPE.SRV);
    const sums = new Map<number, number>();
    for (const { service } of found ?? []) {
      const { priority, weight } = service;
      sums.set(priority, (sums.get(priority) ?? 0) + (weight === 0 ? 100 : weight));
    }
    const withPort = found?.filter(({ service }) => service.hasPort) ?? null;
    return this.#hosts(withPort, 'port', ({ service, ttl }, target) => {
      const { priority, port } = service;
      // Shares of 100, each at least 1. The order of the operations determines the rounding.
      const share = (100 / sums.get(priority)!) * (service.weight === 0 ? 100 : service.weight);
      return srvRecord({ priority, weight: Math.max(1, Math.floor(share)), port }, target, ttl);
    });
  }

  #mailers(): Worked {
    const found = this.#find(this.#name, TYPE.MX);
    const mailers = found?.filter(({ service }) => service.mail) ?? null;
    return this.#hosts(mailers, 'priority', ({ service, ttl }, target) =>
      mxRecord(service.priority, target, ttl),
    );
  }

  /**
   * Returns one record per service, and the addresses of their targets.
   * @param by a target named after its key gets only one record for each value of this field
   */
  #hosts(
    found: readonly FoundService[] | null,
    by: 'port' | 'priority',
    recordOf: (found: FoundService, target: WireName) => AnswerRecord,
  ): Worked {
    if (found === null) return absent;
    const seen = new Set<string>();
    const answer: AnswerRecord[] = [];
    const additional: AnswerRecord[] = [];
    for (const one of found) {
      const { service, ttl } = one;
      const target = targetOf(service);
      if (target === null) continue;
      const isName = service.kind === HOST.name;
      if (isName || isNew(seen, target, `${by} ${service[by]}`)) answer.push(recordOf(one, target));
      if (!isNew(seen, target, isName ? '' : service.host.toString('latin1'))) continue;
      if (isName) additional.push(...this.#addressesOf(target));
      else additional.push(addressRecord(target, service.host, ttl));
    }
    return { exists: true, answer, additional };
  }

  /**
   * Returns a target's addresses, which are A for one inside the zone. For any other, they are A and AAAA, with each
   * CNAME listed once.
   */
  #addressesOf(target: WireName): readonly AnswerRecord[] {
    const folded = foldName(target);
    if (suffixAt(folded, this.#parts.zone) >= 0)
      return this.#records(folded, target, TYPE.A, []) ?? none;
    const v4 = this.#elsewhere(target, TYPE.A);
    const v6 = this.#elsewhere(target, TYPE.AAAA);
    return [...v4, ...v6.filter(({ type }) => type !== TYPE.CNAME)];
  }

  /** Returns the name servers, which are named after the keys below the zone's `ns.dns` whose host is an address. */
  #nameServers(): Worked {
    const found = this.#find(this.#belowZone(nsDns), TYPE.NS);
    const seen = new Set<string>();
    const answer: AnswerRecord[] = [];
    const additional: AnswerRecord[] = [];
    for (const { service, ttl } of found ?? []) {
      const target = targetOf(service);
      if (target === null) continue;
      if (isNew(seen, target)) answer.push(nameRecord(null, TYPE.NS, target, ttl));
      if (service.kind !== HOST.name) additional.push(addressRecord(target, service.host, ttl));
    }
    return { exists: true, answer, additional };
  }
}

function asked(answer: readonly AnswerRecord[] | null): Worked {
  return answer === null ? absent : { exists: true, answer, additional: none };
}

/** True if a TXT query gets the record's own text. As in CoreDNS, a text next to an address is not returned. */
function isText({ kind, text }: SkydnsService): boolean {
  return text.length > 0 && (kind === HOST.none || kind === HOST.name);
}

/**
 * Returns the host, or the key's own name if the host is an address, without the configured number of leading labels.
 */
function targetOf({ kind, host, key, targetStrip }: SkydnsService): WireName | null {
  const name = kind === HOST.name ? host : nameOf(key);
  return name === null ? null : stripped(name, targetStrip);
}

function isNew(seen: Set<string>, bytes: Uint8Array, what = ''): boolean {
  const key = `${Buffer.from(bytes).toString('latin1')} ${what}`;
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

/** Returns the reply, or a promise that resolves once it is in `known`. If the lookup fails, nothing is stored. */
function settled(reply: Maybe<Reply>, known: ForeignReplies, key: string): Reply | Promise<void> {
  if (!isLater(reply)) return reply.own();
  return reply.then(
    (late) => void known.set(key, late.own()),
    () => void known.set(key, null),
  );
}
