/**
 * Reduces API objects to what DNS needs (like client-go's transform). Most objects become one, core Endpoints become
 * one per subset, and an object that DNS does not use becomes none. Fields with an unexpected type are treated as
 * missing, so a server's answer is never an error.
 */
import { isIP, parseNet, plainAddress } from '../../base/ip.ts';
import {
  asObject,
  child,
  children,
  list,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../base/json-object.ts';
import type {
  Endpoint,
  EndpointSlice,
  Namespace,
  Node,
  Pod,
  Service,
  ServiceImport,
  ServicePort,
  ServiceType,
} from './objects.ts';
import type { WantedObjects } from './object-source.ts';

/** The optional fields to store. */
export interface TransformOptions {
  readonly zones: boolean;
  readonly podLabels: boolean;
  readonly topology?: WantedObjects['topology'];
}

/** The label on an endpoint slice that names its service. */
export const serviceNameLabel = 'kubernetes.io/service-name';
/** The label on an endpoint slice that names its imported service (multicluster.x-k8s.io). */
export const importedServiceLabel = 'multicluster.kubernetes.io/service-name';
const sourceClusterLabel = 'multicluster.kubernetes.io/source-cluster';
const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time';

/** Transforms a Service from core/v1. */
export function transformService(raw: JsonObject): [Service] {
  const { namespace, name } = names(raw);
  const spec = child(raw, 'spec');
  const type = serviceType(text(spec, 'type'));
  const one = text(spec, 'clusterIP');
  const many = texts(spec, 'clusterIPs');
  const external = type === 'ExternalName';
  return [
    {
      kind: 'Service',
      namespace,
      name,
      type,
      clusterIPs: external
        ? []
        : (many.length > 0 ? many : one === '' ? [] : [one]).map(plainAddress),
      externalName: external ? text(spec, 'externalName').replace(/\.$/, '') : '',
      externalIPs: texts(spec, 'externalIPs'),
      loadBalancer: children(child(child(raw, 'status'), 'loadBalancer'), 'ingress')
        .map((ingress) => text(ingress, 'ip') || text(ingress, 'hostname'))
        .filter((address) => address !== ''),
      ports: ports(spec, 'ports'),
    },
  ];
}

function serviceType(word: string): ServiceType {
  return word === 'NodePort' || word === 'LoadBalancer' || word === 'ExternalName'
    ? word
    : 'ClusterIP';
}

/** Transforms an EndpointSlice from discovery.k8s.io, v1 or v1beta1. */
export function transformSlice(raw: JsonObject, options: TransformOptions): EndpointSlice[] {
  const { namespace, name } = names(raw);
  const metadata = child(raw, 'metadata');
  const labels = child(metadata, 'labels');
  const service = text(labels, serviceNameLabel);
  const importedService = text(labels, importedServiceLabel);
  if (service === '' && importedService === '') return [];
  const cluster = text(labels, sourceClusterLabel);
  const named = text(raw, 'addressType') === 'FQDN';
  return [
    {
      kind: 'EndpointSlice',
      namespace,
      name,
      service,
      ports: ports(raw, 'ports'),
      endpoints: children(raw, 'endpoints').map((endpoint) =>
        transformEndpoint(endpoint, named, options),
      ),
      triggeredAt: triggerTime(metadata),
      ...(importedService === '' ? {} : { importedService }),
      ...(cluster === '' ? {} : { cluster }),
    },
  ];
}

function transformEndpoint(raw: JsonObject, named: boolean, options: TransformOptions): Endpoint {
  const target = child(raw, 'targetRef');
  // v1beta1 puts node and zone into a map of topology labels.
  const topology = child(raw, 'topology');
  return {
    addresses: named ? texts(raw, 'addresses') : addresses(texts(raw, 'addresses')),
    ready: child(raw, 'conditions')['ready'] !== false,
    hostname: text(raw, 'hostname'),
    nodeName: text(raw, 'nodeName') || text(topology, 'kubernetes.io/hostname'),
    pod: text(target, 'name'),
    zone: options.zones ? text(raw, 'zone') || text(topology, 'topology.kubernetes.io/zone') : '',
    ...(options.topology === undefined ? {} : hintsOf(child(raw, 'hints'))),
  };
}

function hintsOf(hints: JsonObject): Pick<Endpoint, 'forZones' | 'forNodes'> {
  const names = (key: string): string[] =>
    children(hints, key)
      .map((hint) => text(hint, 'name'))
      .filter((name) => name !== '');
  const [forZones, forNodes] = [names('forZones'), names('forNodes')];
  return {
    ...(forZones.length === 0 ? {} : { forZones }),
    ...(forNodes.length === 0 ? {} : { forNodes }),
  };
}

/**
 * Transforms core Endpoints, for servers without slices. Each subset becomes one slice, and the slices are named
 * `NAME`, `NAME#1`, `NAME#2`, …
 */
export function transformEndpoints(raw: JsonObject): EndpointSlice[] {
  const { namespace, name } = names(raw);
  const metadata = child(raw, 'metadata');
  return children(raw, 'subsets').map((subset, index) => ({
    kind: 'EndpointSlice',
    namespace,
    // Object names cannot contain '#', so these names never collide with those of other objects.
    name: index === 0 ? name : `${name}#${index}`,
    service: name,
    ports: ports(subset, 'ports'),
    endpoints: [
      ...children(subset, 'addresses').map((address) => transformAddress(address, true)),
      ...children(subset, 'notReadyAddresses').map((address) => transformAddress(address, false)),
    ],
    triggeredAt: triggerTime(metadata),
  }));
}

function transformAddress(raw: JsonObject, ready: boolean): Endpoint {
  const target = child(raw, 'targetRef');
  return {
    addresses: addresses([text(raw, 'ip')]),
    ready,
    hostname: text(raw, 'hostname'),
    nodeName: text(raw, 'nodeName'),
    pod: text(target, 'name'),
    zone: '',
  };
}

/** Transforms a Pod from core/v1. */
export function transformPod(raw: JsonObject, options: TransformOptions): [Pod] {
  const { namespace, name } = names(raw);
  const status = child(raw, 'status');
  const many = children(status, 'podIPs')
    .map((entry) => plainAddress(text(entry, 'ip')))
    .filter((ip) => ip !== '');
  const one = plainAddress(text(status, 'podIP'));
  return [
    {
      kind: 'Pod',
      namespace,
      name,
      ips: many.length > 0 ? many : one === '' ? [] : [one],
      phase: text(status, 'phase'),
      hostNetwork: child(raw, 'spec')['hostNetwork'] === true,
      terminating: text(child(raw, 'metadata'), 'deletionTimestamp') !== '',
      ...(options.podLabels ? { labels: textMap(child(raw, 'metadata'), 'labels') } : {}),
      ...(options.topology === 'pods' ? { nodeName: text(child(raw, 'spec'), 'nodeName') } : {}),
    },
  ];
}

/** Transforms a Namespace from core/v1. */
export function transformNamespace(raw: JsonObject): [Namespace] {
  return [{ kind: 'Namespace', name: names(raw).name }];
}

/** Transforms a Node from core/v1. */
export function transformNode(raw: JsonObject): [Node] {
  const zone = text(child(child(raw, 'metadata'), 'labels'), 'topology.kubernetes.io/zone');
  const prefixes = [
    ...children(child(raw, 'status'), 'addresses')
      .filter((address) => text(address, 'type') === 'InternalIP')
      .map((address) => plainAddress(text(address, 'address'))),
    ...podRanges(child(raw, 'spec')),
  ].filter((prefix) => parseNet(prefix) !== null);
  return [{ kind: 'Node', name: names(raw).name, zone, prefixes }];
}

function podRanges(spec: JsonObject): string[] {
  const many = texts(spec, 'podCIDRs');
  return many.length > 0 ? many : [text(spec, 'podCIDR')];
}

/** Transforms a ServiceImport from multicluster.x-k8s.io/v1alpha1. */
export function transformServiceImport(raw: JsonObject): [ServiceImport] {
  const { namespace, name } = names(raw);
  const spec = child(raw, 'spec');
  return [
    {
      kind: 'ServiceImport',
      namespace,
      name,
      type: text(spec, 'type') === 'Headless' ? 'Headless' : 'ClusterSetIP',
      ips: addresses(texts(spec, 'ips')),
      ports: ports(spec, 'ports'),
    },
  ];
}

/** Returns the IP addresses among these. */
function addresses(written: readonly string[]): string[] {
  return written.map(plainAddress).filter((address) => isIP(address) !== 0);
}

function names(raw: JsonObject): { namespace: string; name: string } {
  const metadata = child(raw, 'metadata');
  return { namespace: text(metadata, 'namespace'), name: text(metadata, 'name') };
}

function ports(raw: JsonObject, key: string): ServicePort[] {
  return list(raw, key).map((entry) => {
    const port = asObject(entry)['port'];
    return {
      name: text(asObject(entry), 'name'),
      protocol: text(asObject(entry), 'protocol') || 'TCP',
      port: typeof port === 'number' ? port : -1,
    };
  });
}

function triggerTime(metadata: JsonObject): number {
  const stamp = text(child(metadata, 'annotations'), triggerTimeAnnotation);
  const time = stamp === '' ? 0 : Date.parse(stamp);
  return Number.isNaN(time) ? 0 : time;
}
