/** A worker's copy of the cluster. */
import type { Dependency } from '../../../engine/contract/reply-cache.ts';
import type { GoneRecord } from '../../../kube/store/object-record.ts';
import { AddressTable } from '../contract/multimap.ts';
import { ClientPlaces } from './client-places.ts';
import { ClientTable } from './client-table.ts';
import type {
  ClusterFact,
  ServiceForm,
  ImportFact,
  ServiceFact,
  SliceFact,
} from '../contract/cluster-facts.ts';
import { NameTable, type Named } from '../contract/name-table.ts';
import {
  EndpointReader,
  parsePorts,
  copyEncoded,
  type EndpointPort,
} from '../contract/endpoint-encoding.ts';
import type { IndexedSlice } from '../contract/endpoint-index.ts';
import { NamespaceTable, type NamespaceRecord } from '../contract/namespace-table.ts';
import { OutsideTable } from './outside-table.ts';

/** An endpoint slice in the form stored in its services. It is replaced, never modified. */
export interface SliceRecord extends IndexedSlice {
  readonly key: string;
  /** The service `endpoints` belong to, or null. */
  readonly service: ServiceRecord | null;
  readonly imported: ServiceRecord | null;
  readonly cluster: string;
  readonly ports: readonly EndpointPort[];
  readonly endpoints: string;
}

export interface ServiceRecord extends Named, Dependency {
  readonly id: number;
  readonly namespace: NamespaceRecord;
  version: number;
  /** Null if there are slices but no service. */
  form: ServiceForm | null;
  addresses: string;
  ports: readonly EndpointPort[];
  external: string;
  slices: readonly SliceRecord[];
}

const none: readonly SliceRecord[] = [];

function precedes(one: ServiceRecord, other: ServiceRecord): boolean {
  if (one.namespace !== other.namespace) return one.namespace.name < other.namespace.name;
  return one.name < other.name;
}

/**
 * A worker's copy of the cluster, optimized for answering. Each fact changes only the part it concerns. Services are
 * found by the bytes of their labels and contain their slices, while addresses refer back to services.
 */
export class Cluster implements Dependency {
  version = 0;
  /**
   * Incremented whenever any answer may have changed, because a namespace was created or deleted, or the first listing
   * is complete.
   */
  epoch = 0;
  /** Unix time of the last change, used as the serial in the zone's SOA; 0 before the first change. */
  serial = 0;
  /** The same for multicluster zones. */
  importedSerial = 0;
  synced = false;

  #at = 0;
  #clients = new ClientTable();
  #places = new ClientPlaces();
  #outside = new OutsideTable<ServiceRecord>();
  #namespaces = new NamespaceTable();
  #services = new NameTable<ServiceRecord>();
  #imports = new NameTable<ServiceRecord>();
  #slices = new Map<string, SliceRecord>();
  /** Indexed by number, for the address tables. */
  #byId: (ServiceRecord | null)[] = [];
  #freeIds: number[] = [];
  /** Maps addresses to service numbers. */
  #clusterAddresses = new AddressTable();
  #endpointAddresses = new AddressTable();
  readonly #reader = new EndpointReader();
  readonly #scratch = Buffer.allocUnsafeSlow(4096);

  get sizes(): { readonly namespaces: number; readonly services: number; readonly slices: number } {
    return {
      namespaces: this.#namespaces.size,
      services: this.#services.size,
      slices: this.#slices.size,
    };
  }

  get clients(): ClientTable {
    return this.#clients;
  }

  get places(): ClientPlaces {
    return this.#places;
  }

  /** Services' external addresses. */
  get outside(): OutsideTable<ServiceRecord> {
    return this.#outside;
  }

  namespace(bytes: Uint8Array, at: number): NamespaceRecord | null {
    return this.#namespaces.find(bytes, at);
  }

  namespaceName(id: number): string {
    return this.#namespaces.nameOf(id);
  }

  /** Returns the service (or imported service) for a folded label in this namespace. */
  service(
    bytes: Uint8Array,
    at: number,
    namespace: NamespaceRecord,
    imported: boolean,
  ): ServiceRecord | null {
    const table = imported ? this.#imports : this.#services;
    const found = table.find(bytes, at + 1, bytes[at]!, namespace.id);
    return found === null || found.form === null ? null : found;
  }

  /** Yields the services (or imported services) that exist and whose namespaces exist. */
  *all(imported: boolean): Generator<ServiceRecord> {
    for (const service of (imported ? this.#imports : this.#services).values())
      if (service.form !== null && service.namespace.there) yield service;
  }

  /** Finds a service by its names as text, for tests and tools. */
  serviceNamed(namespace: string, name: string): ServiceRecord | null {
    return this.#known(namespace, name, this.#services);
  }

  /**
   * Returns a Service with this cluster address that `accepts` allows. If several claim the address, as when it moves,
   * the first by namespace and name wins, so that all servers agree. `address[at, at + length)` has 4 or 16 bytes.
   */
  serviceAt(
    address: Uint8Array,
    at: number,
    length: number,
    accepts: (service: ServiceRecord) => boolean,
  ): ServiceRecord | null {
    const table = this.#clusterAddresses;
    let found: ServiceRecord | null = null;
    for (let id = table.first(address, at, length); id >= 0; id = table.next()) {
      const service = this.#byId[id]!;
      if (service === null || !accepts(service)) continue;
      if (found === null || precedes(service, found)) found = service;
    }
    return found;
  }

  /** Returns every service with a ready endpoint at this address once, even if the service object does not exist. */
  servicesBehind(address: Uint8Array, at: number, length: number): ServiceRecord[] {
    const table = this.#endpointAddresses;
    const found = new Set<ServiceRecord>();
    for (let id = table.first(address, at, length); id >= 0; id = table.next()) {
      const service = this.#byId[id]!;
      if (service !== null) found.add(service);
    }
    return [...found];
  }

  /**
   * Applies one fact.
   * @returns true if anything that is visible in DNS changed
   */
  apply(fact: ClusterFact): boolean {
    const kind = fact.kind === 'Gone' ? fact.of : fact.kind;
    const imported =
      kind === 'ServiceImport' ||
      (fact.kind === 'EndpointSlice' && fact.imported !== '' && fact.service === '');
    if (!this.#isChangedBy(fact)) return false;
    // Wraps around, since it is compared as 32 bits.
    this.version = (this.version + 1) | 0;
    // Namespaces alone do not change the serial, because CoreDNS counts only services, slices and pods.
    if (kind === 'Namespace') this.epoch++;
    else if (imported) this.importedSerial = this.#at;
    else this.serial = this.#at;
    return true;
  }

  #isChangedBy(fact: ClusterFact): boolean {
    switch (fact.kind) {
      case 'Namespace':
        return this.#namespaces.set(fact.name, true);
      case 'Service':
        return this.#applyService(fact, this.#services);
      case 'ServiceImport':
        return this.#applyService({ ...fact, external: '' }, this.#imports);
      case 'EndpointSlice':
        return this.#applySlice(fact);
      case 'Gone':
        return this.#remove(fact);
      case 'Address':
        this.#places.applyPod(fact);
        return this.#clients.apply(fact, this.#namespaces.numbers);
      case 'Node':
        // Replies that depend on nodes are built for each query anyway.
        this.#places.applyNode(fact.name, fact);
        return false;
      case 'Time':
        this.#at = fact.at;
        return false;
      case 'Serials':
        this.serial = fact.own;
        this.importedSerial = fact.imported;
        return false;
      case 'Listed':
        this.#complete();
        return false;
    }
  }

  #remove({ of, namespace, name }: GoneRecord): boolean {
    switch (of) {
      case 'Namespace':
        return this.#namespaces.set(name, false);
      case 'Service':
        return this.#removeService(namespace, name, this.#services);
      case 'ServiceImport':
        return this.#removeService(namespace, name, this.#imports);
      case 'EndpointSlice': {
        const key = `${namespace}/${name}`;
        const before = this.#slices.get(key);
        if (before === undefined) return false;
        this.#slices.delete(key);
        this.#detach(before, null);
        return true;
      }
      case 'Node':
        this.#places.applyNode(name, null);
        return false;
      case 'Pod':
        // Workers know only the pods' addresses.
        return false;
    }
  }

  /** Takes over the content of the other cluster, which must not be used any more. */
  replaceBy(other: Cluster): void {
    this.#clients = other.#clients;
    this.#places = other.#places;
    this.#outside = other.#outside;
    this.#namespaces = other.#namespaces;
    this.#services = other.#services;
    this.#imports = other.#imports;
    this.#slices = other.#slices;
    this.#byId = other.#byId;
    this.#freeIds = other.#freeIds;
    this.#clusterAddresses = other.#clusterAddresses;
    this.#endpointAddresses = other.#endpointAddresses;
    this.#at = other.#at;
    this.serial = other.serial;
    this.importedSerial = other.importedSerial;
    this.synced = other.synced;
    this.version = (this.version + 1) | 0;
    this.epoch++;
  }

  /** Called when the first listing is complete, or on joining if it already was. */
  #complete(): void {
    if (this.synced) return;
    this.synced = true;
    this.epoch++;
  }

  #applyService(
    fact: ServiceFact | (ImportFact & { external: string }),
    table: NameTable<ServiceRecord>,
  ): boolean {
    const { form, addresses, external } = fact;
    const service = this.#service(fact.namespace, fact.name, table);
    const ports = parsePorts(fact.ports);
    const moved = fact.kind === 'Service' && this.#outside.set(service, fact.outside);
    if (
      !moved &&
      service.form === form &&
      service.addresses === addresses &&
      service.external === external &&
      service.ports === ports
    ) {
      return false;
    }
    if (table === this.#services && service.addresses !== addresses) {
      this.#indexAddresses(service, false);
      service.addresses = addresses;
      this.#indexAddresses(service, true);
    }
    service.addresses = addresses;
    service.form = form;
    service.external = external;
    service.ports = ports;
    service.version = (service.version + 1) | 0;
    return true;
  }

  #removeService(namespace: string, name: string, table: NameTable<ServiceRecord>): boolean {
    const service = this.#known(namespace, name, table);
    if (service === null || service.form === null) return false;
    if (table === this.#services) {
      this.#indexAddresses(service, false);
      this.#outside.set(service, '');
    }
    service.form = null;
    service.addresses = '';
    service.external = '';
    service.ports = parsePorts('');
    service.version = (service.version + 1) | 0;
    this.#forgetIfEmpty(service, table);
    return true;
  }

  #known(namespace: string, name: string, table: NameTable<ServiceRecord>): ServiceRecord | null {
    const parent = this.#namespaces.get(namespace);
    return parent === null ? null : table.get(name, parent.id);
  }

  #service(namespace: string, name: string, table: NameTable<ServiceRecord>): ServiceRecord {
    const parent = this.#namespaces.make(namespace);
    const known = table.get(name, parent.id);
    if (known !== null) return known;
    const id = this.#freeIds.pop() ?? this.#byId.length;
    const service: ServiceRecord = {
      name,
      parent: parent.id,
      id,
      namespace: parent,
      version: 0,
      form: null,
      addresses: '',
      ports: parsePorts(''),
      external: '',
      slices: none,
    };
    this.#byId[id] = service;
    table.add(service);
    this.#namespaces.numbers.hold(parent.id);
    return service;
  }

  #forgetIfEmpty(service: ServiceRecord, table: NameTable<ServiceRecord>): void {
    if (service.form !== null || service.slices.length > 0) return;
    table.remove(service);
    this.#byId[service.id] = null;
    this.#freeIds.push(service.id);
    this.#namespaces.numbers.release(service.namespace.id);
  }

  #applySlice(fact: SliceFact): boolean {
    const key = `${fact.namespace}/${fact.name}`;
    const before = this.#slices.get(key) ?? null;
    const { service, imported, cluster, endpoints } = fact;
    const after: SliceRecord = {
      key: before?.key ?? key,
      service: service === '' ? null : this.#service(fact.namespace, service, this.#services),
      imported: imported === '' ? null : this.#service(fact.namespace, imported, this.#imports),
      cluster,
      ports: parsePorts(fact.ports),
      endpoints,
      index: null,
    };
    if (before !== null && sameSlice(before, after)) return false;
    this.#slices.set(key, after);
    if (before !== null) this.#detach(before, after);
    this.#attach(after, before);
    return true;
  }

  /** Adds a slice to its services, replacing its previous version if there is one. */
  #attach(after: SliceRecord, before: SliceRecord | null): void {
    for (const service of [after.service, after.imported]) {
      if (service === null) continue;
      const at = before === null ? -1 : service.slices.indexOf(before);
      service.slices = at < 0 ? [...service.slices, after] : service.slices.with(at, after);
      service.version = (service.version + 1) | 0;
    }
    this.#indexEndpoints(after, true);
  }

  /** Removes a slice from any services that its next version does not name. */
  #detach(before: SliceRecord, after: SliceRecord | null): void {
    this.#indexEndpoints(before, false);
    for (const service of [before.service, before.imported]) {
      if (service === null || service === after?.service || service === after?.imported) continue;
      const left = service.slices.filter((slice) => slice !== before);
      service.slices = left.length === 0 ? none : left;
      service.version = (service.version + 1) | 0;
      this.#forgetIfEmpty(service, service === before.service ? this.#services : this.#imports);
    }
  }

  #indexEndpoints(slice: SliceRecord, add: boolean): void {
    if (slice.service === null) return;
    const { id } = slice.service;
    const reader = this.#reader.over(slice.endpoints);
    while (reader.next()) {
      if (reader.named) continue;
      const { bytes, addressAt, addressLength } = reader;
      if (add) this.#endpointAddresses.add(bytes, addressAt, addressLength, id);
      else this.#endpointAddresses.remove(bytes, addressAt, addressLength, id);
    }
  }

  #indexAddresses(service: ServiceRecord, add: boolean): void {
    const scratch = this.#scratch;
    const end = copyEncoded(service.addresses, scratch);
    for (let at = 0; at < end;) {
      const length = scratch[at]!;
      if (add) this.#clusterAddresses.add(scratch, at + 1, length, service.id);
      else this.#clusterAddresses.remove(scratch, at + 1, length, service.id);
      at += 1 + length;
    }
  }
}

function sameSlice(a: SliceRecord, b: SliceRecord): boolean {
  return (
    a.endpoints === b.endpoints &&
    a.ports === b.ports &&
    a.service === b.service &&
    a.imported === b.imported &&
    a.cluster === b.cluster
  );
}
