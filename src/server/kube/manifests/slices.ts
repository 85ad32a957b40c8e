import { child, children, text, textMap, texts, type JsonObject } from '../../base/json-object.ts';
import type { Endpoint, EndpointSlice, ServicePort } from '../store/objects.ts';
import type { Manifest } from './manifest.ts';
import { suffix, type ImpliedPod } from './pods.ts';
import { matchesPairs } from './selector.ts';

/**
 * Returns the slices that the endpoint slice controller would derive from a service with a selector. There is one per
 * address family and set of port numbers, because pods may assign different numbers to one port name.
 * @param pods all pods in the service's namespace
 * @param zones by node name
 */
export function impliedSlices(
  service: Manifest,
  pods: readonly ImpliedPod[],
  zones: ReadonlyMap<string, string>,
): EndpointSlice[] {
  const spec = child(service.raw, 'spec');
  const selector = textMap(spec, 'selector');
  if (text(spec, 'type') === 'ExternalName') return [];
  const unready = spec['publishNotReadyAddresses'] === true;
  const chosen = pods.filter(
    (pod) =>
      matchesPairs(selector, pod.labels) && pod.phase !== 'Succeeded' && pod.phase !== 'Failed',
  );
  const families = statedFamilies(spec) ?? [
    chosen.length > 0 && chosen.every((pod) => pod.ips.every((ip) => ip.includes(':')))
      ? 'IPv6'
      : 'IPv4',
  ];
  const groups = new Map<string, { ports: ServicePort[]; endpoints: Endpoint[] }>();
  for (const pod of chosen) {
    const ports = targetPorts(spec, pod);
    for (const family of families) {
      const addresses = pod.ips
        .filter((ip) => ip.includes(':') === (family === 'IPv6'))
        // An endpoint in a slice has one address.
        .slice(0, 1);
      if (addresses.length === 0) continue;
      const key = JSON.stringify([family, ports]);
      let group = groups.get(key);
      if (group === undefined) groups.set(key, (group = { ports, endpoints: [] }));
      group.endpoints.push({
        addresses,
        ready: unready || (pod.ready && !pod.terminating && pod.phase === 'Running'),
        hostname: pod.subdomain === service.name ? pod.hostname : '',
        nodeName: pod.nodeName,
        pod: pod.name,
        zone: zones.get(pod.nodeName) ?? '',
      });
    }
  }
  return [...groups].map(([key, { ports, endpoints }]) => ({
    kind: 'EndpointSlice',
    namespace: service.namespace,
    name: `${service.name}-${suffix(`${service.namespace}/${service.name}/${key}`, 5)}`,
    service: service.name,
    ports,
    endpoints,
    triggeredAt: 0,
  }));
}

/** Values of `spec.trafficDistribution` for which the endpoint slice controller writes zone hints. */
const ZONE_HINTED: readonly string[] = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

/** Returns the slice with the hints that the endpoint slice controller would write (KEP-4444, KEP-3015). */
export function withHints(service: Manifest, slice: EndpointSlice): EndpointSlice {
  const distribution = text(child(service.raw, 'spec'), 'trafficDistribution');
  if (!ZONE_HINTED.includes(distribution)) return slice;
  const byNode = distribution === 'PreferSameNode';
  const endpoints = slice.endpoints.map((endpoint) => {
    const { ready, zone, nodeName } = endpoint;
    return {
      ...endpoint,
      ...(ready && zone !== '' ? { forZones: [zone] } : {}),
      ...(ready && byNode && nodeName !== '' ? { forNodes: [nodeName] } : {}),
    };
  });
  return { ...slice, endpoints };
}

/** An address family, as named by the API. */
export type IpFamily = 'IPv4' | 'IPv6';

/** Returns the address families that a service specifies, with the primary one first, or null if it specifies none. */
export function statedFamilies(spec: JsonObject): IpFamily[] | null {
  const stated = texts(spec, 'ipFamilies').filter((word) => word === 'IPv4' || word === 'IPv6');
  if (stated.length > 0) return stated;
  const ips = [...texts(spec, 'clusterIPs'), text(spec, 'clusterIP')].filter(
    (ip) => ip !== '' && ip !== 'None',
  );
  if (ips.length > 0) return [...new Set(ips.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4')))];
  return text(spec, 'ipFamilyPolicy').endsWith('DualStack') ? ['IPv4', 'IPv6'] : null;
}

/** Returns the service's ports with this pod's numbers, leaving out port names that no container has. */
function targetPorts(spec: JsonObject, pod: ImpliedPod): ServicePort[] {
  const found: ServicePort[] = [];
  for (const entry of children(spec, 'ports')) {
    const protocol = text(entry, 'protocol') || 'TCP';
    const target = entry['targetPort'] ?? entry['port'];
    const port =
      typeof target === 'number'
        ? target
        : pod.ports.find((one) => one.name === target && one.protocol === protocol)?.port;
    if (port !== undefined) found.push({ name: text(entry, 'name'), protocol, port });
  }
  return found;
}
