/** Services as they appear from outside, for `k8s_external`. */
import { distinct } from '../../../base/distinct.ts';
import type {
  OutsideEntry,
  OutsideName,
  OutsideService,
  OutsideServices,
} from '../../../engine/contract/ports.ts';
import { ROOT, type WireName } from '../../../wire/name.ts';
import type { KubernetesAnswererParts } from './answer.ts';
import type { ServiceRecord, SliceRecord } from './cluster.ts';
import type { NamespaceRecord } from '../contract/namespace-table.ts';
import {
  EndpointReader,
  labelledAddress,
  type EndpointPort,
} from '../contract/endpoint-encoding.ts';
import { endpointHash, indexOf } from '../contract/endpoint-index.ts';
import { fits, labelBytes } from './name.ts';
import type { Outside } from './outside-table.ts';
import { nameBelow } from './reply-builder.ts';
import { ReverseReader } from '../../../wire/reverse-name.ts';

export type OutsideParts = Pick<KubernetesAnswererParts, 'cluster' | 'namespaces' | 'own'>;

const ABSENT = -1;

/** Provides a cluster's services to clients outside it, under the same names as in CoreDNS. */
export function outsideOf({ cluster, namespaces, own }: OutsideParts): OutsideServices {
  const shows = (namespace: NamespaceRecord): boolean =>
    namespace.there && (namespaces === null || namespaces.has(namespace.name));

  return {
    get version() {
      return Math.imul(cluster.version, 31) + cluster.epoch;
    },
    get serial() {
      return cluster.serial;
    },
    get synced() {
      return cluster.synced;
    },

    find(folded, end, headless, most) {
      const labels = labelsOf(folded, end);
      const namespace = cluster.namespace(folded, labels.at(-1)!);
      if (namespace === null || !shows(namespace) || labels.length > 4) return null;
      if (labels.length === 1) return [];
      const service = cluster.service(folded, labels.at(-2)!, namespace, false);
      if (service === null) return null;
      const endpoint = labels.length === 3 ? labels[0]! : ABSENT;
      const [port, protocol] =
        labels.length === 4 ? (labels as [number, number]) : [ABSENT, ABSENT];
      const takes = (one: EndpointPort): boolean =>
        fits(folded, port, one.name) && fits(folded, protocol, one.protocol);
      const outside = cluster.outside.of(service);
      const byEndpoint = headless && outside.length === 0;
      const entries =
        byEndpoint && (service.form === 'headless' || endpoint !== ABSENT)
          ? someEntries(service, takes, endpoint === ABSENT ? null : { folded, at: endpoint }, most)
          : serviceEntries(service, service.ports, outside, takes);
      return entries.length === 0 ? null : entries;
    },

    pointers(folded, end) {
      if (reverse.read(folded, end) !== 'address') return null;
      return [...cluster.outside.at(reverse.address.subarray(0, reverse.length))]
        .filter(({ namespace }) => shows(namespace))
        .map((service) => relative(service.name, service.namespace.name))
        .filter((name) => name !== null)
        .toSorted(Buffer.compare);
    },

    nameServers(headless) {
      const found = new Map<string, Uint8Array>();
      let known = false;
      for (const address of own) {
        for (const service of cluster.servicesBehind(address, 0, address.length)) {
          known = true;
          const entries =
            headless && service.form === 'headless'
              ? service.slices
                  .flatMap((slice) => endpointEntries(service, slice, anyPort, null))
                  .map((entry) => ({ ...entry, bytes: entry.address }))
              : cluster.outside.of(service);
          for (const { bytes, named } of entries) if (!named) found.set(bytes.join('.'), bytes);
        }
      }
      return known ? [...found.values()] : own;
    },

    *all(headless): Generator<OutsideService> {
      for (const service of cluster.all(false)) {
        const outside = cluster.outside.of(service);
        const byEndpoint = headless && outside.length === 0 && service.form === 'headless';
        if (!shows(service.namespace) || (outside.length === 0 && !byEndpoint)) continue;
        // When a service changes, its parts are replaced rather than modified.
        const { ports, slices } = service;
        yield {
          headless: byEndpoint,
          names: byEndpoint
            ? () =>
                namesOf(
                  service,
                  slices.flatMap((slice) => slice.ports),
                  (takes) => entriesBySlice(service, slices, takes),
                )
            : () =>
                namesOf(service, ports, (takes) => [
                  serviceEntries(service, ports, outside, takes),
                ]),
        };
      }
    },
  };
}

const anyPort = (): boolean => true;

/** An endpoint's label in lower case, with the length byte at `at`. */
interface HostLabel {
  readonly folded: Uint8Array;
  readonly at: number;
}

/** Returns at most `most` entries for a service's endpoints. */
function someEntries(
  service: ServiceRecord,
  takes: (port: EndpointPort) => boolean,
  label: HostLabel | null,
  most: number,
): OutsideEntry[] {
  const entries: OutsideEntry[] = [];
  for (const slice of service.slices) {
    if (entries.length >= most) break;
    entries.push(...endpointEntries(service, slice, takes, label));
  }
  return entries;
}

/** Yields the service's name and the names of its ports, each with the result of `entriesOf`. */
function namesOf(
  service: ServiceRecord,
  ports: readonly EndpointPort[],
  entriesOf: (takes: (port: EndpointPort) => boolean) => Iterable<readonly OutsideEntry[]>,
): readonly OutsideName[] {
  const labels = [service.name, service.namespace.name];
  const below = relative(...labels);
  if (below === null) return [];
  const names: OutsideName[] = [{ below, entries: () => entriesOf(anyPort) }];
  const named = ports.filter(({ name, protocol }) => name !== '' && protocol !== '');
  for (const one of distinct(named, ({ name, protocol }) => `${name} ${protocol}`)) {
    const { name, protocol } = one;
    const port = relative(`_${name}`, `_${protocol}`, ...labels);
    if (port === null) continue;
    const takes = (other: EndpointPort): boolean =>
      other.name === name && other.protocol === protocol;
    names.push({ below: port, entries: () => entriesOf(takes) });
  }
  return names;
}

function serviceEntries(
  service: ServiceRecord,
  all: readonly EndpointPort[],
  outside: readonly Outside[],
  takes: (port: EndpointPort) => boolean,
): OutsideEntry[] {
  const below = relative(service.name, service.namespace.name);
  if (below === null) return [];
  const ports = all.filter(takes);
  return outside.flatMap(({ bytes, named }) =>
    ports.map(({ port }) => ({ address: bytes, named, port, below })),
  );
}

function* entriesBySlice(
  service: ServiceRecord,
  slices: readonly SliceRecord[],
  takes: (port: EndpointPort) => boolean,
): Generator<readonly OutsideEntry[]> {
  for (const slice of slices) yield endpointEntries(service, slice, takes, null);
}

function endpointEntries(
  service: ServiceRecord,
  slice: SliceRecord,
  takes: (port: EndpointPort) => boolean,
  label: HostLabel | null,
): OutsideEntry[] {
  const ports = slice.service === service ? slice.ports.filter(takes) : [];
  if (ports.length === 0) return [];
  const entries: OutsideEntry[] = [];
  const add = (): void => {
    const { named, host, address } = reader;
    if (label !== null && !fits(label.folded, label.at, host.toLowerCase())) return;
    const below = relative(host, service.name, service.namespace.name);
    if (below === null) return;
    for (const { port } of ports) entries.push({ address, named, port, below });
  };
  if (label === null) for (reader.over(slice.endpoints); reader.next();) add();
  else {
    const index = indexOf(slice);
    for (const hash of hashesOf(label)) {
      for (let place = index.first(hash); place >= 0; place = index.next()) {
        reader.seek(slice.endpoints, place);
        add();
      }
    }
  }
  return entries;
}

/** Returns hashes for an endpoint's label, of its host name and of the address in it. */
function hashesOf({ folded, at }: HostLabel): Set<number> {
  const hashes = new Set([endpointHash(folded, at + 1, folded[at]!)]);
  const address = labelledAddress(labelBytes(folded, at));
  if (address !== null) hashes.add(endpointHash(address, 0, address.length));
  return hashes;
}

const reader = new EndpointReader();
const reverse = new ReverseReader();

function relative(...labels: readonly string[]): WireName | null {
  return nameBelow(labels, ROOT);
}

/** Returns the offsets of the labels in `folded[0, end)`. */
function labelsOf(folded: Uint8Array, end: number): number[] {
  const labels: number[] = [];
  for (let at = 0; at < end; at += folded[at]! + 1) labels.push(at);
  return labels;
}
