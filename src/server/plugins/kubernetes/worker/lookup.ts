/** Finds the objects that a name refers to. */
import type { PodMode } from '../contract/kubernetes-options.ts';
import type { Dependency } from '../../../engine/contract/reply-cache.ts';
import { parseAddress, printAddress, unmappedBytes } from '../../../base/ip.ts';
import type { Query } from '../../../transport/query.ts';
import { LOWER, type WireName } from '../../../wire/name.ts';
import type { Cluster, ServiceRecord, SliceRecord } from './cluster.ts';
import type { NamespaceRecord } from '../contract/namespace-table.ts';
import { fits, labelBytes, ParsedName } from './name.ts';
import {
  dashedAddress,
  EndpointReader,
  labelledAddress,
  type EndpointPort,
} from '../contract/endpoint-encoding.ts';
import { endpointHash, indexOf } from '../contract/endpoint-index.ts';
import { ReverseReader } from '../../../wire/reverse-name.ts';
import { isNear, type NearEndpoints, type Topology } from './topology.ts';

export interface ClusterZone {
  /** Absolute, in lower case. */
  readonly text: string;
  readonly wire: WireName;
  readonly multicluster: boolean;
}

export interface ClusterLookupParts {
  readonly cluster: Cluster;
  readonly pods: PodMode;
  /** Limits the visible namespaces; null means all. */
  readonly namespaces: ReadonlySet<string> | null;
  readonly ignoreEmpty: boolean;
  readonly zonal: boolean;
  /** Narrows headless services to endpoints near the client; null disables this. */
  readonly topology: Topology | null;
}

/** A name's meaning. Only `nothing` leads to NXDOMAIN, for every type. */
export type Meaning =
  | 'nothing'
  /** Exists but has no records, such as a zone, `svc`, a namespace, or a zonal name without endpoints. */
  | 'empty'
  | 'service'
  /** A service's endpoints, as returned by `endpointsOf`. */
  | 'endpoints'
  | 'external'
  /** A pod named by its address, which is in `address`. */
  | 'pod'
  | 'dns-version'
  | 'name-server'
  /** A service's or endpoints' reverse name; the address is in `reverse`. */
  | 'pointer';

/**
 * Resolves names. Only this class decides whether a name exists, and it decides the same for all types. An instance can
 * be reused; its fields contain the parts of the last result.
 */
export class ClusterLookup {
  readonly name: ParsedName = new ParsedName();
  readonly reverse: ReverseReader = new ReverseReader();
  /** Set for `service`, `endpoints` and `external`. */
  service: ServiceRecord | null = null;
  /** Set for `pod`: 4 or 16 bytes. */
  address: Uint8Array = this.reverse.address;
  /** Set for `pod`: the number of pods with this address, or 1 if this is not checked. */
  pods = 1;
  dependency: Dependency;
  /** True if other clients may get other endpoints. */
  tailored = false;
  readonly #parts: ClusterLookupParts;
  readonly #reader = new EndpointReader();
  #folded: Uint8Array = new Uint8Array(0);
  /** The address in the host label of the queried name, or null if the label is not an address. */
  #hostAddress: Uint8Array | null = null;
  #hostHash = 0;
  #anyZone = false;
  #topology = '';
  #near: NearEndpoints | null = null;

  constructor(parts: ClusterLookupParts) {
    this.#parts = parts;
    this.dependency = parts.cluster;
  }

  /**
   * Resolves `folded[0, length)`, a name in `zone` in lower case and wire form.
   * @param client the client that will receive the endpoints
   */
  find(
    folded: Uint8Array,
    length: number,
    zone: ClusterZone,
    client: Query | null = null,
  ): Meaning {
    this.#folded = folded;
    this.#near = null;
    this.tailored = false;
    this.service = null;
    this.dependency = this.#parts.cluster;
    const zoneAt = length - zone.wire.length;
    const parsed = this.name.read(folded, zoneAt, {
      multicluster: zone.multicluster,
      zonal: this.#parts.zonal,
    });
    const reverse = this.reverse.read(folded, length);
    if (reverse === 'address' && this.#pointsSomewhere()) return 'pointer';
    switch (parsed.shape) {
      case 'apex':
      case 'kind':
      case 'dns':
        return 'empty';
      case 'dns-version':
      case 'name-server':
        return parsed.shape;
      case 'other':
        return 'nothing';
      case 'namespace':
        return reverse === 'none' ? this.#namespaceOnly() : 'nothing';
      case 'object':
        return reverse === 'none' ? this.#narrowed(this.#object(zone), zone, client) : 'nothing';
    }
  }

  /** Selects the endpoints near the client, unless the name specifies an endpoint or a zone. */
  #narrowed(meaning: Meaning, zone: ClusterZone, client: Query | null): Meaning {
    const { topology } = this.#parts;
    if (topology === null || client === null || meaning !== 'endpoints') return meaning;
    if (zone.multicluster || this.name.endpoint >= 0 || this.name.topology >= 0) return meaning;
    const choice = topology.choose(client, () => this.slices(), this.#reader);
    this.tailored = choice !== null;
    this.#near = choice?.near ?? null;
    return meaning;
  }

  /**
   * True if PTR answers may reveal this namespace. As in CoreDNS, only the names in `namespaces` count, not its labels.
   */
  reveals(namespace: NamespaceRecord): boolean {
    const { namespaces } = this.#parts;
    return namespaces === null || (namespaces.has(namespace.name) && namespace.there);
  }

  /** Returns the services with endpoints at the address in `reverse`. */
  revealedBehind(): ServiceRecord[] {
    const { address, length } = this.reverse;
    return this.#parts.cluster
      .servicesBehind(address, 0, length)
      .filter(({ namespace }) => this.reveals(namespace));
  }

  /** Returns the service with the address in `reverse`, or null. */
  revealedService(): ServiceRecord | null {
    const { address, length } = this.reverse;
    return this.#parts.cluster.serviceAt(address, 0, length, ({ namespace }) =>
      this.reveals(namespace),
    );
  }

  takesPort({ name, protocol }: EndpointPort): boolean {
    return (
      fits(this.#folded, this.name.port, name) && fits(this.#folded, this.name.protocol, protocol)
    );
  }

  /** Yields the slices that match the name, which are those for its cluster that have at least one port. */
  *slices(): Generator<SliceRecord> {
    const { cluster, endpoint } = this.name;
    for (const slice of this.service!.slices) {
      const elsewhere =
        slice.imported === this.service &&
        endpoint >= 0 &&
        slice.cluster !== labelBytes(this.#folded, cluster);
      if (!elsewhere && slice.ports.some((port) => this.takesPort(port))) yield slice;
    }
  }

  /**
   * Calls `take` for each endpoint in the slice that matches the name until it returns false. The reader is positioned
   * at the endpoint. If the name is that of a single endpoint, only that one is read.
   * @returns true if `take` wants more
   */
  eachEndpoint(slice: SliceRecord, reader: EndpointReader, take: () => boolean): boolean {
    if (this.name.endpoint < 0) {
      for (reader.over(slice.endpoints); reader.next();)
        if (this.#takes(reader) && !take()) return false;
      return true;
    }
    if (!this.#eachAt(slice, reader, this.#hostHash, true, take)) return false;
    const address = this.#hostAddress;
    if (address === null) return true;
    const hash = endpointHash(address, 0, address.length);
    return this.#eachAt(slice, reader, hash, false, take);
  }

  /** @param byHost true for endpoints that have a host name, false for those named after their address */
  #eachAt(
    slice: SliceRecord,
    reader: EndpointReader,
    hash: number,
    byHost: boolean,
    take: () => boolean,
  ): boolean {
    const index = indexOf(slice);
    for (let place = index.first(hash); place >= 0; place = index.next()) {
      reader.seek(slice.endpoints, place);
      if (reader.hostLength > 0 === byHost && this.#takes(reader) && !take()) return false;
    }
    return true;
  }

  #takes(reader: EndpointReader): boolean {
    if (this.name.topology >= 0 && !this.#anyZone && !zoneIs(reader, this.#topology)) return false;
    if (this.#near !== null && !isNear(this.#near, reader)) return false;
    return this.name.endpoint < 0 || this.#isHost(reader);
  }

  #namespaceOnly(): Meaning {
    const namespace = this.#namespace();
    return namespace === null || (this.name.pod && this.#parts.pods === 'disabled')
      ? 'nothing'
      : 'empty';
  }

  #namespace(): NamespaceRecord | null {
    const found = this.#parts.cluster.namespace(this.#folded, this.name.namespace);
    const { namespaces } = this.#parts;
    return found === null || (namespaces !== null && !namespaces.has(found.name)) ? null : found;
  }

  #object(zone: ClusterZone): Meaning {
    const namespace = this.#namespace();
    if (namespace === null) return 'nothing';
    if (this.name.pod) return this.#pod(namespace);
    const { cluster, ignoreEmpty } = this.#parts;
    const service = cluster.service(this.#folded, this.name.object, namespace, zone.multicluster);
    if (service === null) return 'nothing';
    this.service = service;
    this.dependency = service;
    const { form } = service;
    if (
      ignoreEmpty &&
      form === 'cluster' &&
      service.slices.every(({ endpoints }) => endpoints === '')
    ) {
      return 'nothing';
    }
    if (form === 'external') return this.#external(service);
    if (form === 'headless' || this.name.endpoint >= 0) return this.#endpoints(form === 'headless');
    if (this.name.topology >= 0 || !service.ports.some((port) => this.takesPort(port)))
      return 'nothing';
    return 'service';
  }

  #external({ external }: ServiceRecord): Meaning {
    const { endpoint, port, protocol, topology } = this.name;
    if (endpoint >= 0 || port >= 0 || protocol >= 0 || topology >= 0) return 'nothing';
    return parseAddress(external) === null ? 'external' : 'nothing';
  }

  #endpoints(headless: boolean): Meaning {
    const { name } = this;
    if (name.topology >= 0 && !headless) return 'nothing';
    this.#anyZone = false;
    this.#topology = name.topology < 0 ? '' : this.name.topologyText(this.#folded, labelBytes);
    if (name.endpoint >= 0) {
      const folded = this.#folded;
      this.#hostAddress = labelledAddress(labelBytes(folded, name.endpoint));
      this.#hostHash = endpointHash(folded, name.endpoint + 1, folded[name.endpoint]!);
    }
    if (this.#hasEndpoint()) return 'endpoints';
    if (name.topology < 0) return 'nothing';
    if (!name.prefer) return 'empty';
    this.#anyZone = true;
    return this.#hasEndpoint() ? 'endpoints' : 'empty';
  }

  #hasEndpoint(): boolean {
    for (const slice of this.slices())
      if (!this.eachEndpoint(slice, this.#reader, none)) return true;
    return false;
  }

  #isHost(reader: EndpointReader): boolean {
    const { bytes, hostAt, hostLength } = reader;
    if (hostLength === 0) return this.#hostAddress !== null && reader.isAt(this.#hostAddress);
    const at = this.name.endpoint;
    if (this.#folded[at] !== hostLength) return false;
    for (let i = 0; i < hostLength; i++) {
      if (LOWER[bytes[hostAt + i]!] !== this.#folded[at + 1 + i]) return false;
    }
    return true;
  }

  #pod(namespace: NamespaceRecord): Meaning {
    const { pods, cluster } = this.#parts;
    if (pods === 'disabled') return 'nothing';
    const text = dashedAddress(labelBytes(this.#folded, this.name.object));
    const address = parseAddress(text);
    if (address === null) return 'nothing';
    if (pods === 'insecure') {
      this.address = unmappedBytes(address);
      this.pods = 1;
      this.dependency = always;
      return 'pod';
    }
    this.address = address;
    // CoreDNS compares texts, and those from the API server are in canonical form.
    this.pods = cluster.clients.pods(address, 0, address.length, namespace.id);
    return this.pods > 0 && printAddress(address) === text ? 'pod' : 'nothing';
  }

  #pointsSomewhere(): boolean {
    return this.revealedService() !== null || this.revealedBehind().length > 0;
  }
}

const none = (): boolean => false;

const always: Dependency = { version: 0 };

function zoneIs(reader: EndpointReader, zone: string): boolean {
  if (reader.zoneLength !== zone.length) return false;
  for (let i = 0; i < zone.length; i++)
    if (reader.bytes[reader.zoneAt + i] !== zone.charCodeAt(i)) return false;
  return true;
}
