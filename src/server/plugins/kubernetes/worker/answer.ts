/** Turns questions into replies, in the worker. */
import { EDE, isAddressType, MESSAGE_MAX, RCODE, TYPE } from '../../../wire/iana.ts';
import type { Maybe } from '../../../base/maybe.ts';
import type { Next } from '../../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../../engine/contract/zone-match.ts';
import { suffixAt, type WireName } from '../../../wire/name.ts';
import type { Query } from '../../../transport/query.ts';
import { failure, type Reply } from '../../../wire/reply.ts';
import { SECTION, type MessageWriter } from '../../../wire/writer.ts';
import { answerAlias, endpointAlias, externalTarget } from './alias.ts';
import type { Cluster } from './cluster.ts';
import {
  ClusterLookup,
  type ClusterLookupParts,
  type Meaning,
  type ClusterZone,
} from './lookup.ts';
import { ReplyCache } from '../../../engine/contract/reply-cache.ts';
import { nameServers, writeNameServers, writeServerAddresses } from './name-server.ts';
import { EndpointReader } from '../contract/endpoint-encoding.ts';
import { endpointHash, indexOf } from '../contract/endpoint-index.ts';
import { PLUGIN, ReplyBuilder } from './reply-builder.ts';
import {
  endpointLabels,
  serviceLabels,
  writeAddresses,
  writePodService,
  writeServices,
} from './targets.ts';

export interface KubernetesAnswererParts extends ClusterLookupParts {
  /** Sorted by name length, longest first. */
  readonly zones: readonly ClusterZone[];
  readonly primary: WireName;
  readonly ttl: number;
  /** If a name under one of these is not found, the query is passed on; null disables this. */
  readonly fallthrough: readonly string[] | null;
  readonly writer: MessageWriter;
  readonly own: readonly Uint8Array[];
  readonly ask: Next;
}

/** Content of `dns-version`, which is the version of the cluster DNS specification. */
export const DNS_VERSION = '1.1.0';
/** TTL in seconds. */
export const DNS_VERSION_TTL = 28_800;
const reader = new EndpointReader();

/**
 * Answers queries from a worker's copy of the cluster. The lookup decides once for all types whether a name exists, and
 * this class only writes records. Repeated queries get cached replies.
 */
export class KubernetesAnswerer {
  readonly #parts: KubernetesAnswererParts;
  readonly #cluster: Cluster;
  readonly #lookup: ClusterLookup;
  readonly #builder: ReplyBuilder;
  readonly #replies = new ReplyCache();
  readonly #passed: ZoneMatch | null;
  #epoch = -1;

  constructor(parts: KubernetesAnswererParts) {
    this.#parts = parts;
    this.#cluster = parts.cluster;
    this.#lookup = new ClusterLookup(parts);
    this.#builder = new ReplyBuilder(parts.writer, parts.ttl);
    this.#passed = parts.fallthrough === null ? null : new ZoneMatch(parts.fallthrough);
  }

  /** Returns the zone that the question's name is in, or null. */
  zoneOf(query: Query): ClusterZone | null {
    const { folded, nameLength } = query;
    for (const zone of this.#parts.zones)
      if (suffixAt(folded, zone.wire, nameLength) >= 0) return zone;
    return null;
  }

  answer(query: Query, next: Next): Maybe<Reply> {
    const zone = this.zoneOf(query);
    if (zone === null) return next(query);
    const cluster = this.#cluster;
    if (cluster.epoch !== this.#epoch) {
      this.#epoch = cluster.epoch;
      this.#replies.clear();
    }
    return this.#replies.get(query) ?? this.#make(query, zone, next);
  }

  #make(query: Query, zone: ClusterZone, next: Next): Maybe<Reply> {
    const { type } = query;
    if (type === TYPE.AXFR || type === TYPE.IXFR) return failure(RCODE.REFUSED, PLUGIN);
    const lookup = this.#lookup;
    const meaning = lookup.find(query.folded, query.nameLength, zone, query);
    if (meaning === 'nothing') {
      if (this.#passed?.holds(query)) return next(query);
      if (!this.#cluster.synced) return this.#notReady(query, zone);
      return this.#negative(query, zone, RCODE.NXDOMAIN);
    }
    if (meaning === 'external')
      return this.#alias(query, zone, externalTarget(lookup.service!.external));
    // Usually, this is the whole reply. If the client cannot receive it, the full reply is written only for the cache.
    this.#builder.begin(query, zone.wire.length, query.limit);
    this.#write(query, zone, meaning);
    if (this.#builder.full && query.limit < MESSAGE_MAX && !lookup.tailored) {
      if (!this.#replies.wants(query)) return this.#builder.finish();
      this.#builder.abandon();
      this.#builder.begin(query, zone.wire.length);
      this.#write(query, zone, meaning);
    }
    if (this.#builder.answers === 0) {
      this.#builder.abandon();
      const alias = meaning === 'endpoints' ? endpointAlias(lookup) : null;
      if (alias !== null) return this.#alias(query, zone, alias);
      return this.#negative(query, zone, RCODE.NOERROR);
    }
    const reply = this.#builder.finish();
    return lookup.tailored ? reply : this.#replies.offer(query, reply, this.#restsOn(meaning));
  }

  #restsOn(meaning: Meaning): { readonly version: number } {
    const own = meaning === 'service' || meaning === 'endpoints' || meaning === 'pod';
    return own ? this.#lookup.dependency : this.#cluster;
  }

  /** Writes the answer and the additional records, or nothing if there is no data of this type. */
  #write(query: Query, zone: ClusterZone, meaning: Meaning): void {
    const builder = this.#builder;
    const lookup = this.#lookup;
    const { type } = query;
    const wantsAddress = isAddressType(type);
    switch (meaning) {
      case 'empty':
        if (lookup.name.shape === 'apex') this.#writeApex(type, zone);
        return;
      case 'service':
      case 'endpoints':
        if (wantsAddress) writeAddresses(builder, lookup, type);
        else if (type === TYPE.SRV) writeServices(builder, lookup);
        return;
      case 'pod': {
        const { address } = lookup;
        const fits = type === (address.length === 4 ? TYPE.A : TYPE.AAAA);
        if (fits) builder.address(SECTION.answer, null, address, 0, address.length);
        else if (type === TYPE.SRV) writePodService(builder, lookup, query.folded);
        return;
      }
      case 'dns-version':
        if (type === TYPE.TXT) builder.text(DNS_VERSION, DNS_VERSION_TTL);
        return;
      case 'name-server':
        if (wantsAddress) writeServerAddresses(builder, this.#nameServers(), type);
        return;
      case 'pointer':
        if (type === TYPE.PTR) this.#writePointers();
        else if (lookup.name.shape === 'apex') this.#writeApex(type, zone);
        return;
    }
  }

  #writeApex(type: number, zone: ClusterZone): void {
    if (type === TYPE.SOA) this.#builder.soa(SECTION.answer, this.#serial(zone));
    else if (type === TYPE.NS) writeNameServers(this.#builder, this.#nameServers());
  }

  #nameServers(): ReturnType<typeof nameServers> {
    return nameServers(this.#cluster, this.#parts.own);
  }

  /** Writes the service with this address or, failing that, every endpoint at the address, each name once. */
  #writePointers(): void {
    const lookup = this.#lookup;
    const builder = this.#builder;
    const service = lookup.revealedService();
    if (service !== null) return this.#point(serviceLabels(service));
    const { address, length } = lookup.reverse;
    const seen = new Set<string>();
    const hash = endpointHash(address, 0, length);
    for (const behind of lookup.revealedBehind()) {
      for (const slice of behind.slices) {
        if (slice.service !== behind) continue;
        const index = indexOf(slice);
        for (let place = index.first(hash); place >= 0; place = index.next()) {
          if (builder.full) return;
          reader.seek(slice.endpoints, place);
          if (!reader.isAt(address, length)) continue;
          const labels = endpointLabels(behind, slice, reader.host);
          if (!seen.has(labels.join('.'))) this.#point(labels);
          seen.add(labels.join('.'));
        }
      }
    }
  }

  #point(labels: readonly string[]): void {
    const target = this.#builder.nameBelow(labels, this.#parts.primary);
    if (target !== null) this.#builder.alias(TYPE.PTR, target);
  }

  /** Answers with an alias, or returns null if the target is not a domain name. */
  #alias(query: Query, zone: ClusterZone, target: WireName | null): Maybe<Reply> {
    const { type } = query;
    const asked = type === TYPE.CNAME || isAddressType(type);
    if (target === null || !asked) return this.#negative(query, zone, RCODE.NOERROR);
    if (type === TYPE.CNAME) {
      this.#builder.begin(query, zone.wire.length);
      this.#builder.alias(TYPE.CNAME, target);
      return this.#replies.offer(query, this.#builder.finish(), this.#lookup.dependency);
    }
    return answerAlias(query, target, {
      zone,
      lookup: this.#lookup,
      builder: this.#builder,
      ask: this.#parts.ask,
      servers: () => this.#nameServers(),
      nothing: (asked) => this.#negative(asked, zone, RCODE.NOERROR),
    });
  }

  #negative(query: Query, zone: ClusterZone, rcode: number): Reply {
    const reply = this.#builder.negative(query, zone.wire.length, rcode, this.#serial(zone));
    return this.#replies.offer(query, reply, this.#cluster);
  }

  /** The name may turn out to exist once everything has been listed, so caches must not store an NXDOMAIN for it. */
  #notReady(query: Query, zone: ClusterZone): Reply {
    const { length } = zone.wire;
    return this.#builder
      .negative(query, length, RCODE.SERVFAIL, this.#serial(zone))
      .with({ errors: notReadyErrors });
  }

  #serial(zone: ClusterZone): number {
    return zone.multicluster ? this.#cluster.importedSerial : this.#cluster.serial;
  }
}

const notReadyErrors = [
  { code: EDE.NOT_READY, text: 'the first listing of the Kubernetes API is not complete yet' },
] as const;
