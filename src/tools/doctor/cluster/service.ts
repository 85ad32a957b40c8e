/**
 * The DNS Service that pods query, its endpoints from EndpointSlices, and cluster names whose
 * answers are known.
 */
import {
  child,
  children,
  text,
  textMap,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { dnsServiceIn, selectorOf, serviceAddresses } from '../../pods/dns-service.ts';
import type { ProbeServer } from '../../probe/network.ts';
import { endpointsIn, serviceServers, type DnsEndpoint } from '../../probe/replicas.ts';
import { LARGE_ANSWER_ADDRESSES, NEW_SERVICE_MS } from '../thresholds/cluster.ts';

export interface DnsService {
  readonly namespace: string;
  readonly name: string;
  /** Selects its pods, in kubectl's syntax. */
  readonly selector: string;
  readonly vips: readonly ProbeServer[];
  /** Protocols of its DNS port: `UDP`, `TCP`. */
  readonly protocols: readonly string[];
}

/** The Service that pods query; null if there is none. */
export function dnsServiceOf(services: readonly JsonObject[]): DnsService | null {
  const found = dnsServiceIn(services);
  if (found === null) return null;
  return {
    namespace: text(child(found, 'metadata'), 'namespace'),
    name: nameOf(found),
    selector: selectorOf(found),
    vips: serviceServers(found),
    protocols: children(child(found, 'spec'), 'ports')
      .filter((each) => text(each, 'name').startsWith('dns') || each['port'] === 53)
      .map((each) => text(each, 'protocol') || 'TCP'),
  };
}

/** A Service’s endpoints. @param slices of any Services */
export function endpointsOf(
  slices: readonly JsonObject[],
  { namespace, name }: DnsService,
): readonly DnsEndpoint[] {
  return slices.filter((slice) => serviceOf(slice) === `${namespace}/${name}`).flatMap(endpointsIn);
}

/** An existing cluster name and its expected answer. */
export interface KnownName {
  /** Absolute. */
  readonly name: string;
  readonly addresses: readonly string[];
}

/** The number of Services to query; a few are enough to detect a server that lags behind. */
const KNOWN_MAX = 8;

/**
 * Services with addresses, from all namespaces in turn, old enough that every server must know
 * them.
 */
export function knownNames(
  services: readonly JsonObject[],
  domain: string,
  nowMs: number,
): readonly KnownName[] {
  const old = services.filter((each) => {
    const made = Date.parse(text(child(each, 'metadata'), 'creationTimestamp'));
    return serviceAddresses(each).length > 0 && !(nowMs - made < NEW_SERVICE_MS);
  });
  const byNamespace = Map.groupBy(old, (each) => text(child(each, 'metadata'), 'namespace'));
  const found: KnownName[] = [];
  for (let nth = 0; found.length < KNOWN_MAX; nth++) {
    const round = [...byNamespace.values()].flatMap((list) => list.slice(nth, nth + 1));
    if (round.length === 0) break;
    for (const each of round)
      found.push({
        name: `${nameOf(each)}.${text(child(each, 'metadata'), 'namespace')}.svc.${domain}.`,
        addresses: serviceAddresses(each),
      });
  }
  return found.slice(0, KNOWN_MAX);
}

/** The external names that ExternalName Services point to. */
export function externalNames(services: readonly JsonObject[]): readonly string[] {
  const names = services
    .map((each) => text(child(each, 'spec'), 'externalName').toLowerCase().replace(/\.$/, ''))
    .filter((name) => /^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(name) && /[a-z]$/.test(name));
  return [...new Set(names)].slice(0, KNOWN_MAX).map((name) => `${name}.`);
}

/**
 * The smallest headless Service whose answer does not fit into 512 bytes; null if there is none.
 */
export function largeName(
  services: readonly JsonObject[],
  slices: readonly JsonObject[],
  domain: string,
): string | null {
  const counts = new Map<string, number>();
  for (const slice of slices) {
    const ready = endpointsIn(slice).filter((each) => each.ready).length;
    counts.set(serviceOf(slice), (counts.get(serviceOf(slice)) ?? 0) + ready);
  }
  const large = services
    .filter((each) => text(child(each, 'spec'), 'clusterIP') === 'None')
    .map((each) => ({ each, count: counts.get(keyOf(each)) ?? 0 }))
    .filter(({ count }) => count >= LARGE_ANSWER_ADDRESSES)
    .toSorted((one, other) => one.count - other.count)[0];
  if (large === undefined) return null;
  const [namespace, name] = keyOf(large.each).split('/');
  return `${name}.${namespace}.svc.${domain}.`;
}

/** `namespace/name` of the service that a slice is about. */
function serviceOf(slice: JsonObject): string {
  const metadata = child(slice, 'metadata');
  const name = textMap(metadata, 'labels')['kubernetes.io/service-name'] ?? '';
  return `${text(metadata, 'namespace')}/${name}`;
}

function keyOf(object: JsonObject): string {
  return `${text(child(object, 'metadata'), 'namespace')}/${nameOf(object)}`;
}

function nameOf(object: JsonObject): string {
  return text(child(object, 'metadata'), 'name');
}
