import {
  netHolds,
  parseAddress,
  parseNet,
  plainAddress,
  printAddress,
} from '../../../server/base/ip.ts';
import type { IpFamily } from '../../../server/kube/manifests/slices.ts';
import {
  child,
  children,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../../server/base/json-object.ts';

/** One port of a service in one address family, with everything that its rules depend on. */
export interface ProxiedPort {
  readonly namespace: string;
  readonly service: string;
  /** `''` if unnamed. */
  readonly portName: string;
  /** `namespace/service:port`, or `namespace/service` for an unnamed port. Used in comments and hashes. */
  readonly name: string;
  /** `tcp`, `udp` or `sctp`. */
  readonly protocol: string;
  readonly clusterIP: string;
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
  readonly externalIPs: readonly string[];
  /** Addresses of a load balancer that preserves the destination (`ipMode: VIP`, the default). */
  readonly loadBalancerIPs: readonly string[];
  /** `spec.loadBalancerSourceRanges` with host bits cleared; empty: unrestricted. */
  readonly sourceRanges: readonly string[];
  /** Seconds that a client stays with the same endpoint (`sessionAffinity: ClientIP`), or null for no affinity. */
  readonly affinitySeconds: number | null;
  /** 0: none. */
  readonly healthCheckNodePort: number;
  readonly externalPolicyLocal: boolean;
  readonly internalPolicyLocal: boolean;
}

/** The API server's default (`spec.sessionAffinityConfig`), in seconds. */
const AFFINITY_SECONDS = 10_800;
/** Marks services handled by another proxy. */
const otherProxyLabel = 'service.kubernetes.io/service-proxy-name';

/**
 * Returns the service ports (core/v1) that kube-proxy creates rules for. There are none for headless and ExternalName
 * services, or for those that belong to another proxy or have no address in this family.
 */
export function servicePorts(raw: JsonObject, family: IpFamily): readonly ProxiedPort[] {
  const metadata = child(raw, 'metadata');
  const spec = child(raw, 'spec');
  const first = text(spec, 'clusterIP') || (texts(spec, 'clusterIPs')[0] ?? '');
  const type = text(spec, 'type') || 'ClusterIP';
  if (first === '' || first === 'None' || type === 'ExternalName') return [];
  if (Object.hasOwn(textMap(metadata, 'labels'), otherProxyLabel)) return [];
  const clusterIP = clusterAddress(spec, first, family);
  if (clusterIP === null) return [];
  const namespace = text(metadata, 'namespace') || 'default';
  const service = text(metadata, 'name');
  const externalIPs = addressesOf(texts(spec, 'externalIPs'), family);
  const isExternal = type !== 'ClusterIP' || texts(spec, 'externalIPs').length > 0;
  const externalPolicyLocal = isExternal && text(spec, 'externalTrafficPolicy') === 'Local';
  const shared = {
    namespace,
    service,
    clusterIP,
    externalIPs,
    loadBalancerIPs: loadBalancerAddresses(raw, family),
    sourceRanges: sourceRanges(texts(spec, 'loadBalancerSourceRanges'), family),
    affinitySeconds: affinitySeconds(spec),
    healthCheckNodePort:
      type === 'LoadBalancer' && externalPolicyLocal ? numberAt(spec, 'healthCheckNodePort') : 0,
    externalPolicyLocal,
    internalPolicyLocal: text(spec, 'internalTrafficPolicy') === 'Local',
  };
  return children(spec, 'ports').map((port) => {
    const portName = text(port, 'name');
    return {
      ...shared,
      portName,
      name: portName === '' ? `${namespace}/${service}` : `${namespace}/${service}:${portName}`,
      protocol: (text(port, 'protocol') || 'TCP').toLowerCase(),
      port: numberAt(port, 'port'),
      nodePort: numberAt(port, 'nodePort'),
    };
  });
}

/** True if it can be reached other than through its cluster address. */
export function isExternallyAccessible(port: ProxiedPort): boolean {
  return port.nodePort !== 0 || port.loadBalancerIPs.length > 0 || port.externalIPs.length > 0;
}

/** @param prefix in CIDR form */
export function holdsAddress(prefix: string, address: string): boolean {
  const [parsed, bytes] = [parseNet(prefix), parseAddress(address)];
  return parsed !== null && bytes !== null && netHolds(parsed, bytes);
}

/** The canonical text of an address in this family, or null if it is malformed or in another family. */
export function addressOf(given: string, family: IpFamily): string | null {
  const bytes = parseAddress(plainAddress(given));
  return bytes?.length === (family === 'IPv4' ? 4 : 16) ? printAddress(bytes) : null;
}

/** Returns 0 if missing or not a number. */
export function numberAt(object: JsonObject, key: string): number {
  const value = object[key];
  return typeof value === 'number' ? value : 0;
}

/** If families are given, the addresses are in the same order. */
function clusterAddress(spec: JsonObject, first: string, family: IpFamily): string | null {
  const families = texts(spec, 'ipFamilies');
  const all = texts(spec, 'clusterIPs');
  const given = families.length === 0 || all.length === 0 ? first : all[families.indexOf(family)];
  return given === undefined ? null : addressOf(given, family);
}

function addressesOf(all: readonly string[], family: IpFamily): readonly string[] {
  return all.map((given) => addressOf(given, family)).filter((address) => address !== null);
}

function loadBalancerAddresses(raw: JsonObject, family: IpFamily): readonly string[] {
  const ingress = children(child(child(raw, 'status'), 'loadBalancer'), 'ingress');
  const kept = ingress.filter((one) => (text(one, 'ipMode') || 'VIP') === 'VIP');
  return addressesOf(
    kept.map((one) => text(one, 'ip')),
    family,
  );
}

/** A range that includes everything is the same as none. */
function sourceRanges(all: readonly string[], family: IpFamily): readonly string[] {
  const ranges: string[] = [];
  for (const given of all) {
    const word = given.trim();
    const net = word.includes('/') ? parseNet(word) : null;
    if (net === null || net.bytes.length !== (family === 'IPv4' ? 4 : 16)) continue;
    if (net.bits === 0) return [];
    const bytes = net.bytes.map((byte, at) => byte & (0xff00 >> clamp(net.bits - 8 * at)));
    ranges.push(`${printAddress(bytes)}/${net.bits}`);
  }
  return ranges;
}

function clamp(bits: number): number {
  return Math.max(0, Math.min(8, bits));
}

function affinitySeconds(spec: JsonObject): number | null {
  if (text(spec, 'sessionAffinity') !== 'ClientIP') return null;
  const config = child(child(spec, 'sessionAffinityConfig'), 'clientIP');
  return numberAt(config, 'timeoutSeconds') || AFFINITY_SECONDS;
}
