/**
 * Selects the endpoints that a node uses for a service port, based on readiness, topology hints and traffic policies.
 */
import { printHostPort } from '../../../server/base/ip.ts';
import {
  child,
  children,
  list,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../../server/base/json-object.ts';
import { serviceNameLabel } from '../../../server/kube/store/transform.ts';
import { addressOf, isExternallyAccessible, numberAt, type ProxiedPort } from './service-port.ts';
import type { IpFamily } from '../../../server/kube/manifests/slices.ts';

/** One address and port behind a service port. */
export interface ServiceEndpoint {
  readonly ip: string;
  readonly port: number;
  /** `10.1.2.3:53`, `[fd00::1]:53`; rules are sorted by it. */
  readonly key: string;
  readonly node: string;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  /** Zones and nodes that should use it (`hints`), or null if there are no such hints. */
  readonly zones: readonly string[] | null;
  readonly nodes: readonly string[] | null;
}

/** Maps a service port (`portKey`) to its endpoints, in order and without duplicates. */
export type EndpointMap = ReadonlyMap<string, readonly ServiceEndpoint[]>;

/** The key for a service port's endpoints, which consists of the unique port name and the protocol. */
export function portKey(
  namespace: string,
  service: string,
  port: string,
  protocol: string,
): string {
  return `${namespace}/${service}:${port}/${protocol}`;
}

/** Returns the endpoints in all slices (discovery.k8s.io/v1) for one address family. */
export function endpointsOf(slices: Iterable<JsonObject>, family: IpFamily): EndpointMap {
  const found = new Map<string, Map<string, ServiceEndpoint>>();
  for (const slice of slices) {
    if (text(slice, 'addressType') !== family) continue;
    const metadata = child(slice, 'metadata');
    const service = textMap(metadata, 'labels')[serviceNameLabel] ?? '';
    if (service === '') continue;
    const namespace = text(metadata, 'namespace') || 'default';
    const endpoints = children(slice, 'endpoints');
    for (const port of children(slice, 'ports')) {
      const number = numberAt(port, 'port');
      if (number === 0) continue;
      const protocol = (text(port, 'protocol') || 'TCP').toLowerCase();
      const key = portKey(namespace, service, text(port, 'name'), protocol);
      let known = found.get(key);
      if (known === undefined) found.set(key, (known = new Map()));
      for (const raw of endpoints) addEndpoint(known, raw, number, family);
    }
  }
  return new Map(
    [...found].map(([key, known]) => [
      key,
      [...known.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    ]),
  );
}

/** An address may appear twice for a while, in which case the one that is not terminating counts. */
function addEndpoint(
  known: Map<string, ServiceEndpoint>,
  raw: JsonObject,
  port: number,
  family: IpFamily,
): void {
  const ip = addressOf(texts(raw, 'addresses')[0] ?? '', family);
  if (ip === null) return;
  const conditions = child(raw, 'conditions');
  const terminating = conditions['terminating'] === true;
  const key = printHostPort(ip, port);
  if (known.has(key) && terminating) return;
  const hints = child(raw, 'hints');
  known.set(key, {
    ip,
    port,
    key,
    node: text(raw, 'nodeName'),
    ready: conditions['ready'] !== false,
    serving: conditions['serving'] !== false,
    terminating,
    zones: names(hints, 'forZones'),
    nodes: names(hints, 'forNodes'),
  });
}

function names(hints: JsonObject, key: string): readonly string[] | null {
  const all = list(hints, key);
  return all.length === 0 ? null : children(hints, key).map((one) => text(one, 'name'));
}

export interface Where {
  readonly node: string;
  readonly zone: string;
}

export interface UsableEndpoints {
  /** For traffic that may go to any node. */
  readonly cluster: readonly ServiceEndpoint[];
  /** For traffic that must stay on this node (traffic policy Local). */
  readonly local: readonly ServiceEndpoint[];
  /** The union of both. */
  readonly reachable: readonly ServiceEndpoint[];
  /** True if any node has an endpoint. */
  readonly any: boolean;
}

const none: UsableEndpoints = { cluster: [], local: [], reachable: [], any: false };

/**
 * Sorts a service port's endpoints as kube-proxy does in Kubernetes 1.36. Ready endpoints come first or, if there are
 * none, terminating ones that still serve. Node hints take precedence over zone hints, and both count only if every
 * ready endpoint has one.
 */
export function usableEndpoints(
  all: readonly ServiceEndpoint[],
  port: ProxiedPort,
  where: Where,
): UsableEndpoints {
  if (all.length === 0) return none;
  const external = isExternallyAccessible(port);
  const usesCluster = !port.internalPolicyLocal || external;
  const usesLocal = port.internalPolicyLocal || (port.externalPolicyLocal && external);
  const ready = all.filter((one) => one.ready);
  const ending = all.filter((one) => one.serving && one.terminating);

  const near = usesCluster ? nearest(ready, where) : null;
  const cluster = !usesCluster ? [] : ready.length > 0 ? (near ?? ready) : ending;
  if (!usesLocal) return { cluster, local: [], reachable: cluster, any: cluster.length > 0 };

  const isLocal = (one: ServiceEndpoint): boolean => where.node !== '' && one.node === where.node;
  const localReady = ready.filter(isLocal);
  const local =
    localReady.length > 0 ? localReady : ending.filter((one) => !one.ready && isLocal(one));
  const any = ready.length > 0 || ending.length > 0;
  const both = new Set([...cluster, ...local]);
  const reachable = usesCluster ? all.filter((one) => both.has(one)) : local;
  return { cluster, local, reachable, any };
}

/**
 * Returns the ready endpoints that topology hints select for this node. If null, there are no hints and all endpoints
 * are used.
 */
function nearest(
  ready: readonly ServiceEndpoint[],
  { node, zone }: Where,
): readonly ServiceEndpoint[] | null {
  for (const [kind, own] of [
    ['nodes', node],
    ['zones', zone],
  ] as const) {
    if (!ready.every((one) => one[kind] !== null)) continue;
    const chosen = ready.filter((one) => one[kind]!.includes(own));
    if (chosen.length > 0) return chosen;
  }
  return null;
}
