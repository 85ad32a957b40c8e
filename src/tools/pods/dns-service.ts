/**
 * Finds the Service that pods use for DNS. This file contains all names and labels that distributions use to mark
 * cluster DNS. The DNS pods are those that the Service selects.
 */
import {
  child,
  children,
  text,
  textMap,
  texts,
  type JsonObject,
} from '../../server/base/json-object.ts';

/** The namespaces in which distributions run cluster DNS. */
export const dnsNamespaces = ['kube-system', 'openshift-dns'] as const;

/** Selects a namespace's DNS pods by the label k8s-app if their Service cannot be read. */
export const usualDnsSelector = 'k8s-app in (kube-dns,coredns,ndots)';

/**
 * Returns the Service that pods query, or null if there is no such Service. Others may select the same pods: headless
 * Services, those for metrics, and a node cache's `kube-dns-upstream`, which no pod queries.
 * @param services from any number of namespaces
 * @param clusterDns kubelet's clusterDNS, if known
 */
export function dnsServiceIn(
  services: readonly JsonObject[],
  clusterDns: readonly string[] = [],
): JsonObject | null {
  const ranked = services
    .map((service) => ({ service, rank: rankOf(service, clusterDns) }))
    .filter(({ rank }) => rank !== Infinity)
    .toSorted((a, b) => a.rank - b.rank || (ageKey(a.service) < ageKey(b.service) ? -1 : 1));
  return ranked[0]?.service ?? null;
}

/** Ranks a service as a candidate. The lowest rank is the most certain, and Infinity means that pods do not use it. */
function rankOf(service: JsonObject, clusterDns: readonly string[]): number {
  const metadata = child(service, 'metadata');
  const addresses = serviceAddresses(service);
  const ports = children(child(service, 'spec'), 'ports');
  const hasDns = ports.some((port) => port['port'] === 53 || text(port, 'name') === 'dns');
  if (addresses.length === 0 || (ports.length > 0 && !hasDns)) return Infinity;
  if (addresses.some((address) => clusterDns.includes(address))) return 0;
  const name = text(metadata, 'name');
  if (name === 'kube-dns') return 1;
  if (name.endsWith('-upstream')) return Infinity;
  // OpenShift's.
  if (name === 'dns-default') return 2;
  const labels = textMap(metadata, 'labels');
  const app = labels['k8s-app'] ?? '';
  const isClusters = labels['kubernetes.io/cluster-service'] === 'true';
  if (app === 'kube-dns') return isClusters ? 3 : 4;
  const named = labels['kubernetes.io/name'] ?? '';
  if (isClusters && /^(?:CoreDNS|KubeDNS)$/.test(named)) return 5;
  // The charts for CoreDNS and ndots, each with its own labels.
  const chart = labels['app.kubernetes.io/name'] ?? app;
  return /^(?:coredns|ndots)$/.test(chart) ? 6 : Infinity;
}

/** Sorts the oldest first, because it existed when kubelets were configured with an address. */
function ageKey(service: JsonObject): string {
  const metadata = child(service, 'metadata');
  return `${text(metadata, 'creationTimestamp')} ${text(metadata, 'name')}`;
}

/** Returns a service's addresses, or none if it is headless. */
export function serviceAddresses(service: JsonObject): readonly string[] {
  const spec = child(service, 'spec');
  const all = texts(spec, 'clusterIPs');
  return (all.length > 0 ? all : [text(spec, 'clusterIP')]).filter(
    (address) => address !== '' && address !== 'None',
  );
}

/** Returns a Service's selector in the API's syntax, or an empty string if it has none. */
export function selectorOf(service: JsonObject): string {
  const pairs = Object.entries(textMap(child(service, 'spec'), 'selector'));
  return pairs.map(([key, value]) => `${key}=${value}`).join(',');
}
