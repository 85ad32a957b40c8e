/** Answers for services as they appear from outside the cluster. */
import { distinct } from '../../base/distinct.ts';
import { bytesKey } from '../../base/copy-bytes.ts';
import { isLater, type Maybe } from '../../base/maybe.ts';
import type { Next } from '../../engine/contract/plugin.ts';
import type { OutsideEntry, OutsideServices } from '../../engine/contract/ports.ts';
import { ReplyCache } from '../../engine/contract/reply-cache.ts';
import { EDE, FLAG, isAddressType, MESSAGE_MAX, RCODE, TYPE } from '../../wire/iana.ts';
import { joinAnswers } from '../../wire/join.ts';
import { joinNames, NAME_MAX, suffixAt, type WireName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../wire/writer.ts';
import {
  addressesOf,
  aliasOf,
  ownName,
  targetsOf,
  writeAddress,
  writeSoa,
  writeTarget,
  type ExternalZone,
} from './external-zone.ts';

/** The plugin's name in replies. */
export const PLUGIN = 'k8s_external';

export interface ExternalParts {
  /** Sorted by name length, longest first. */
  readonly zones: readonly ExternalZone[];
  readonly primary: ExternalZone;
  readonly headless: boolean;
  readonly services: OutsideServices;
  /** True if queries for names that do not exist go to the next plugin. */
  readonly passes: (query: Query) => boolean;
  readonly writer: MessageWriter;
  readonly ask: Next;
  readonly next: Next;
}

/**
 * Number of entries to read for every reply, because with more than a hundred of them the weight of SRV records is 1
 * anyway.
 */
const ENTRIES_MIN = 128;
/** Maximum size of another record in bytes. */
const RECORD_MAX = 2 * NAME_MAX + 64;

const refused = failure(RCODE.REFUSED, PLUGIN);
const notReadyErrors = [
  { code: EDE.NOT_READY, text: 'the first listing of the Kubernetes API is not complete yet' },
] as const;

/** Answers queries for the zones. Replies are cached until the cluster changes. */
export class ExternalAnswerer {
  readonly #parts: ExternalParts;
  readonly #replies = new ReplyCache();

  constructor(parts: ExternalParts) {
    this.#parts = parts;
  }

  answer(query: Query): Maybe<Reply> {
    const zone = this.#zoneOf(query);
    if (zone === null) return this.#parts.next(query);
    return this.#replies.get(query) ?? this.#make(query, zone);
  }

  #zoneOf({ folded, nameLength }: Query): ExternalZone | null {
    for (const zone of this.#parts.zones)
      if (suffixAt(folded, zone.name, nameLength) >= 0) return zone;
    return null;
  }

  #make(query: Query, zone: ExternalZone): Maybe<Reply> {
    const { type, folded, nameLength } = query;
    if (type === TYPE.AXFR || type === TYPE.IXFR) return refused;
    const own = ownName(zone, folded, nameLength);
    if (own !== 'elsewhere') return this.#writeOwn(query, zone, own);
    const { services, headless, passes, next } = this.#parts;
    const pointers = services.pointers(folded, nameLength);
    if (pointers !== null && pointers.length > 0) return this.#point(query, zone, pointers);
    const end = nameLength - zone.name.length;
    const most = query.limit === MESSAGE_MAX ? Infinity : Math.max(ENTRIES_MIN, query.limit >> 3);
    let entries = services.find(folded, end, headless, most);
    let cut = entries !== null && entries.length >= most;
    // Records that the client cannot receive are read only to fill the cache, or to determine which types are missing.
    if (cut && (!hasSome(entries!, type) || this.#replies.wants(query))) {
      entries = services.find(folded, end, headless, Infinity);
      cut = false;
    }
    if (entries !== null) return this.#writeEntries(query, zone, entries, cut);
    if (passes(query)) return next(query);
    if (services.synced) return this.#negative(query, zone, RCODE.NXDOMAIN);
    return this.#soaOnly(query, zone, RCODE.SERVFAIL).with({ errors: notReadyErrors });
  }

  #writeOwn(query: Query, zone: ExternalZone, own: 'apex' | 'empty' | 'server' | 'nothing'): Reply {
    const { type } = query;
    const { services, headless } = this.#parts;
    if (own === 'nothing') return this.#negative(query, zone, RCODE.NXDOMAIN);
    if (own === 'apex' && type === TYPE.SOA)
      return this.#reply(query, (to) => writeSoa(to, SECTION.answer, zone, services.serial));
    if (own === 'apex' && type === TYPE.NS) {
      return this.#reply(query, (to) => {
        to.named(SECTION.answer, null, TYPE.NS, zone.ttl, zone.server);
        for (const address of services.nameServers(headless))
          writeAddress(to, SECTION.additional, zone.server, address, zone.ttl);
      });
    }
    const length = sizeOf(type);
    const addresses =
      own === 'server'
        ? services.nameServers(headless).filter((address) => address.length === length)
        : [];
    if (addresses.length === 0) return this.#negative(query, zone, RCODE.NOERROR);
    return this.#reply(query, (to) => {
      for (const address of addresses) writeAddress(to, SECTION.answer, null, address, zone.ttl);
    });
  }

  #point(query: Query, zone: ExternalZone, pointers: readonly WireName[]): Reply {
    if (query.type !== TYPE.PTR) return this.#negative(query, zone, RCODE.NOERROR);
    const { primary } = this.#parts;
    return this.#reply(query, (to) => {
      for (const below of pointers) {
        const target = joinNames(below, primary.name);
        if (target !== null && hasRoom(to))
          to.named(SECTION.answer, null, TYPE.PTR, zone.ttl, target);
      }
    });
  }

  /** @param partial true if there are more entries than these, in which case TC is set */
  #writeEntries(
    query: Query,
    zone: ExternalZone,
    entries: readonly OutsideEntry[],
    partial: boolean,
  ): Maybe<Reply> {
    const { type } = query;
    if (type === TYPE.SRV) return this.#writeTargets(query, zone, entries, partial);
    const alias = aliasOf(entries);
    if (alias !== null) return this.#alias(query, zone, alias);
    const length = sizeOf(type);
    const addresses = [...addressesOf(entries)].filter((address) => address.length === length);
    if (addresses.length === 0) return this.#negative(query, zone, RCODE.NOERROR);
    const write = (to: MessageWriter, cut: () => void): void => {
      for (const address of addresses)
        if (hasRoom(to)) writeAddress(to, SECTION.answer, null, address, zone.ttl);
        else cut();
    };
    return partial ? this.#partly(query, write) : this.#reply(query, write);
  }

  #writeTargets(
    query: Query,
    zone: ExternalZone,
    entries: readonly OutsideEntry[],
    partial: boolean,
  ): Reply {
    const targets = [...targetsOf(entries, zone)];
    if (targets.length === 0) return this.#negative(query, zone, RCODE.NOERROR);
    const records = [...distinct(targets, ({ target, port }) => `${port} ${bytesKey(target)}`)];
    const addresses = [
      ...distinct(
        targets,
        ({ target, address }) => bytesKey(target) + (address === null ? '' : bytesKey(address)),
      ),
    ];
    const write = (to: MessageWriter, cut: () => void): void => {
      for (const one of records)
        if (hasRoom(to)) writeTarget(to, null, one, zone.ttl);
        else cut();
      for (const { target, address } of addresses) {
        if (address !== null && hasRoom(to))
          writeAddress(to, SECTION.additional, target, address, zone.ttl);
      }
    };
    return partial ? this.#partly(query, write) : this.#reply(query, write);
  }

  /** Answers with an alias for an external host, whose addresses the whole server looks up. */
  #alias(query: Query, zone: ExternalZone, target: WireName): Maybe<Reply> {
    const { type } = query;
    if (type !== TYPE.CNAME && !isAddressType(type))
      return this.#negative(query, zone, RCODE.NOERROR);
    const first = this.#write(query, (to) =>
      to.named(SECTION.answer, null, TYPE.CNAME, zone.ttl, target),
    );
    if (type === TYPE.CNAME) return first;
    const rest = this.#parts.ask(query.asking(target));
    return isLater(rest) ? rest.then((late) => joined(first, late)) : joined(first, rest);
  }

  /** @param write writes the records, and calls `cut` if one of them does not fit */
  #write(query: Query, write: (to: MessageWriter, cut: () => void) => void): Reply {
    const { writer } = this.#parts;
    let isCut = false;
    const cut = (): void => void (isCut = true);
    writer.reply(query, FLAG.AA);
    write(writer, cut);
    if (isCut) {
      writer.abandon();
      writer.reply(query, FLAG.AA | FLAG.TC);
      write(writer, cut);
    }
    return writer.finish(RCODE.NOERROR, PLUGIN);
  }

  /** Writes the beginning of a reply with TC set, which is not cached. */
  #partly(query: Query, write: (to: MessageWriter, cut: () => void) => void): Reply {
    return this.#write(query, (to, cut) => {
      write(to, cut);
      to.cut();
    });
  }

  /** Writes a reply and caches it until the cluster changes. */
  #reply(query: Query, write: (to: MessageWriter, cut: () => void) => void): Reply {
    return this.#replies.offer(query, this.#write(query, write), this.#parts.services);
  }

  #negative(query: Query, zone: ExternalZone, rcode: number): Reply {
    return this.#replies.offer(query, this.#soaOnly(query, zone, rcode), this.#parts.services);
  }

  #soaOnly(query: Query, zone: ExternalZone, rcode: number): Reply {
    const { writer, services } = this.#parts;
    writer.reply(query, FLAG.AA);
    writeSoa(writer, SECTION.authority, zone, services.serial);
    return writer.finish(rcode, PLUGIN);
  }
}

function hasSome(entries: readonly OutsideEntry[], type: number): boolean {
  if (type === TYPE.SRV) return entries.some(({ port }) => port >= 0);
  const length = sizeOf(type);
  return entries.some(({ address, named }) => !named && address.length === length);
}

/** Returns the size in bytes of an address of this type, or 0 for any other type. */
function sizeOf(type: number): number {
  return type === TYPE.A ? 4 : type === TYPE.AAAA ? 16 : 0;
}

function hasRoom(to: MessageWriter): boolean {
  return to.length <= MESSAGE_MAX - RECORD_MAX;
}

/** If the target's server refuses or fails, the answer is only the alias. */
function joined(first: Reply, rest: Reply): Reply {
  const says = rest.rcode === RCODE.NOERROR || rest.rcode === RCODE.NXDOMAIN;
  return says ? joinAnswers(first, rest) : first;
}
