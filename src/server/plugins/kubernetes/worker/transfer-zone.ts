/** Provides the plugin's zones as records for transfer. */
import { appendTo } from '../../../base/append-to.ts';
import { distinct } from '../../../base/distinct.ts';
import { bytesKey, copyOf } from '../../../base/copy-bytes.ts';
import { parseAddress } from '../../../base/ip.ts';
import { writeClusterSoa } from '../../../wire/cluster-soa.ts';
import { TYPE } from '../../../wire/iana.ts';
import { foldName, suffixAt, type WireName } from '../../../wire/name.ts';
import { SECTION, type WriteRecord } from '../../../wire/writer.ts';
import {
  streamOf,
  type Transferable,
  type TransferRecords,
  type TransferSource,
} from '../../../zone/transfer-source.ts';
import { externalTarget } from './alias.ts';
import { DNS_VERSION, DNS_VERSION_TTL, type KubernetesAnswererParts } from './answer.ts';
import type { ServiceRecord, SliceRecord } from './cluster.ts';
import { EndpointReader, type EndpointPort } from '../contract/endpoint-encoding.ts';
import type { ClusterZone } from './lookup.ts';
import { nameServers } from './name-server.ts';
import { isReverseZone } from '../contract/kubernetes-options.ts';
import { nameBelow, SOA_TTL_MAX } from './reply-builder.ts';
import { eachAddress, endpointLabels, serviceLabels, weightOf } from './targets.ts';

export type ClusterTransferParts = Pick<
  KubernetesAnswererParts,
  'cluster' | 'zones' | 'ttl' | 'namespaces' | 'ignoreEmpty' | 'own'
>;

/**
 * Provides the forward zones once everything has been listed. No NOTIFY is sent, because a busy cluster's zone changes
 * all the time. Secondaries follow the timers in its SOA record instead.
 */
export function clusterTransfers(parts: ClusterTransferParts): TransferSource {
  return {
    find(name, length) {
      const zone = parts.zones.find(
        ({ wire }) => wire.length === length && suffixAt(name, wire, length) === 0,
      );
      const given = zone !== undefined && !isReverseZone(zone.text) && parts.cluster.synced;
      return given ? transferable(zone, parts) : null;
    },
    watch: () => () => undefined,
  };
}

function transferable(zone: ClusterZone, parts: ClusterTransferParts): Transferable {
  const { cluster } = parts;
  const serial = zone.multicluster ? cluster.importedSerial : cluster.serial;
  return {
    zone: zone.text,
    serial,
    history: [],
    records: () => streamOf(recordsOf(zone, serial, parts), RECORD_MAX),
  };
}

/** Maximum record size, which is an owner name, another name, and the fixed bytes. */
const RECORD_MAX = 600;

/** Number of a service's endpoints to write before serving queries again, which takes about 5 ms. */
const ENDPOINTS_A_TURN = 1000;

/**
 * Yields every record that queries for each of the names would return. Port names have only SRV records, because
 * servers reject addresses at names with underscores. The services are listed when the first record after the SOA is
 * requested. Their parts are replaced rather than modified, so the transfer keeps seeing that state. A service's
 * records are generated when its turn comes.
 */
function* recordsOf(
  zone: ClusterZone,
  serial: number,
  parts: ClusterTransferParts,
): TransferRecords {
  const { cluster, ttl, namespaces, ignoreEmpty, own } = parts;
  const { wire } = zone;
  yield (to) => writeClusterSoa(to, SECTION.answer, wire, serial, ttl, Math.min(ttl, SOA_TTL_MAX));
  const services: Snapshot[] = [];
  for (const service of cluster.all(zone.multicluster)) {
    const hidden = namespaces !== null && !namespaces.has(service.namespace.name);
    if (!hidden && !(ignoreEmpty && isEmpty(service))) services.push(snapshotOf(service));
  }
  const servers = nameServers(cluster, own);
  const targets = servers.map(({ labels }) => nameBelow(labels, wire)).filter(isName);
  for (const target of distinct(targets, bytesKey))
    yield record(wire, TYPE.NS, ttl, nameData(target));
  const itself = nameBelow(['ns', 'dns'], wire);
  if (itself !== null) {
    for (const address of distinct(
      servers.map(({ address: one }) => one),
      bytesKey,
    ))
      yield addressRecord(itself, ttl, address);
  }
  const version = nameBelow(['dns-version'], wire);
  const text = Uint8Array.from([DNS_VERSION.length, ...Buffer.from(DNS_VERSION)]);
  if (version !== null) yield record(version, TYPE.TXT, DNS_VERSION_TTL, (to) => to.bytes(text));
  for (const service of services) {
    const owner = nameBelow(serviceLabels(service.live), wire);
    if (owner === null) continue;
    if (service.form === 'external') yield* aliasRecords(owner, service, ttl);
    else if (service.form === 'cluster') yield* clusterRecords(owner, service, wire, ttl);
    else yield* headlessRecords(owner, service, wire, ttl);
  }
}

/** A service as it was when the transfer started. */
interface Snapshot extends Pick<
  ServiceRecord,
  'form' | 'addresses' | 'ports' | 'external' | 'slices'
> {
  /** The current service, whose names do not change. */
  readonly live: ServiceRecord;
}

function snapshotOf(live: ServiceRecord): Snapshot {
  const { form, addresses, ports, external, slices } = live;
  return { form, addresses, ports, external, slices, live };
}

function isEmpty({ form, slices }: Pick<ServiceRecord, 'form' | 'slices'>): boolean {
  return form === 'cluster' && slices.every(({ endpoints }) => endpoints === '');
}

function* aliasRecords(owner: WireName, { external }: Snapshot, ttl: number): TransferRecords {
  const target = parseAddress(external) === null ? externalTarget(external) : null;
  if (target !== null) yield record(owner, TYPE.CNAME, ttl, nameData(target));
}

function* clusterRecords(
  owner: WireName,
  service: Snapshot,
  zone: WireName,
  ttl: number,
): TransferRecords {
  const addresses: Uint8Array[] = [];
  eachAddress(service, (bytes, at, length) => addresses.push(copyOf(bytes, at, at + length)));
  for (const { name, takes } of namesOf(owner, service, service.ports, zone)) {
    if (name === owner)
      for (const address of distinct(addresses, bytesKey)) yield addressRecord(name, ttl, address);
    const ports = service.ports.filter(takes);
    const entries = ports.flatMap(({ port }) => addresses.map(() => ({ target: owner, port })));
    yield* serviceRecords(name, ttl, entries);
  }
}

interface EndpointSeen {
  readonly slice: SliceRecord;
  readonly address: Uint8Array;
  readonly named: boolean;
  readonly target: WireName | null;
  /** The endpoint's own name, or null if it has none. */
  readonly own: WireName | null;
}

function* headlessRecords(
  owner: WireName,
  service: Snapshot,
  zone: WireName,
  ttl: number,
): TransferRecords {
  const endpoints: EndpointSeen[] = [];
  const hosts = new Map<string, EndpointSeen[]>();
  let turn = 0;
  for (const slice of service.slices) {
    // A separate reader is used, because the shared one is used elsewhere during the wait.
    const reader = new EndpointReader();
    for (reader.over(slice.endpoints); reader.next();) {
      if (++turn % ENDPOINTS_A_TURN === 0) yield null;
      const { named, address } = reader;
      const own = nameBelow(endpointLabels(service.live, slice, reader.host), zone);
      const endpoint = { slice, address, named, own, target: named ? address : own };
      endpoints.push(endpoint);
      if (own === null) continue;
      appendTo(hosts, bytesKey(foldName(own)), endpoint);
    }
  }
  const ports = service.slices.flatMap((slice) => slice.ports);
  for (const { name, takes } of namesOf(owner, service, ports, zone)) {
    const there = endpoints.filter(({ slice }) => slice.ports.some(takes));
    if (name === owner) yield* endpointRecords(name, ttl, there);
    else yield* endpointServices(name, ttl, there, takes);
  }
  for (const group of hosts.values()) yield* endpointRecords(group[0]!.own!, ttl, group);
}

/** A name with addresses cannot have an alias, and an alias cannot have other records (RFC 2181 section 10.1). */
function* endpointRecords(
  owner: WireName,
  ttl: number,
  endpoints: readonly EndpointSeen[],
): TransferRecords {
  const addresses = endpoints.filter(({ named }) => !named).map(({ address }) => address);
  if (addresses.length === 0) {
    const [first] = endpoints.map(({ address }) => address).toSorted(Buffer.compare);
    if (first !== undefined) yield record(owner, TYPE.CNAME, ttl, nameData(first));
    return;
  }
  for (const address of distinct(addresses, bytesKey)) yield addressRecord(owner, ttl, address);
  yield* endpointServices(owner, ttl, endpoints, () => true);
}

function* endpointServices(
  owner: WireName,
  ttl: number,
  endpoints: readonly EndpointSeen[],
  takes: (port: EndpointPort) => boolean,
): TransferRecords {
  const entries: SrvTarget[] = [];
  for (const { slice, target } of endpoints) {
    if (target === null) continue;
    for (const port of slice.ports) if (takes(port)) entries.push({ target, port: port.port });
  }
  yield* serviceRecords(owner, ttl, entries);
}

interface SrvTarget {
  readonly target: WireName;
  /** -1 means that there is no SRV record, but the entry counts for the weight. */
  readonly port: number;
}

function* serviceRecords(
  owner: WireName,
  ttl: number,
  entries: readonly SrvTarget[],
): TransferRecords {
  const weight = weightOf(entries.length);
  const withPort = entries.filter(({ port }) => port >= 0);
  for (const { target, port } of distinct(withPort, (one) => `${one.port} ${bytesKey(one.target)}`))
    yield record(owner, TYPE.SRV, ttl, (to) => to.srvData(0, weight, port, target));
}

interface PortName {
  readonly name: WireName;
  readonly takes: (port: EndpointPort) => boolean;
}

/** Yields the service's name and the names of its named ports. */
function* namesOf(
  owner: WireName,
  service: Snapshot,
  ports: readonly EndpointPort[],
  zone: WireName,
): Generator<PortName> {
  yield { name: owner, takes: () => true };
  const named = ports.filter(({ name, protocol }) => name !== '' && protocol !== '');
  for (const one of distinct(named, ({ name, protocol }) => `${name} ${protocol}`)) {
    const { name: port, protocol } = one;
    const labels = [`_${port}`, `_${protocol}`];
    const name = nameBelow([...labels, ...serviceLabels(service.live)], zone);
    const takes = (other: EndpointPort): boolean =>
      other.name === port && other.protocol === protocol;
    if (name !== null) yield { name, takes };
  }
}

function record(owner: WireName, type: number, ttl: number, data: WriteRecord): WriteRecord {
  return (to) => {
    to.open(SECTION.answer, owner, type, ttl);
    data(to);
    to.close();
  };
}

function addressRecord(owner: WireName, ttl: number, address: Uint8Array): WriteRecord {
  return record(owner, address.length === 4 ? TYPE.A : TYPE.AAAA, ttl, (to) => to.bytes(address));
}

function nameData(name: WireName): WriteRecord {
  return (to) => to.name(name);
}

function isName(name: WireName | null): name is WireName {
  return name !== null;
}
