/**
 * Finds the Service that pods ask for names. This is the one place that knows the names and labels
 * by which distributions mark cluster DNS. The DNS pods are those that its selector selects.
 */
import { child, children, text, textMap, texts, type JsonObject } from '../../base/json-object.ts';

/** The namespaces in which distributions run cluster DNS. */
export const dnsNamespaces = ['kube-system', 'openshift-dns'] as const;

/** Selects the DNS pods of a namespace where their Service cannot be read, by the label k8s-app. */
export const usualDnsSelector = 'k8s-app in (kube-dns,coredns,ndots)';

/**
 * The Service that pods query; null: none of these. Others may select the same pods: headless ones,
 * those of metrics, and `kube-dns-upstream` of a node cache, which no pod queries. @param services
 * of any namespaces @param clusterDns kubelet's clusterDNS, if it is known
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

/**
 * The rank of a service as the one that pods use: the least is the surest; Infinity: pods do not
 * use it.
 */
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
  // The charts of CoreDNS and ndots, with their own labels.
  const chart = labels['app.kubernetes.io/name'] ?? app;
  return /^(?:coredns|ndots)$/.test(chart) ? 6 : Infinity;
}

/** Sorts the oldest first: it was there when kubelets were given an address. */
function ageKey(service: JsonObject): string {
  const metadata = child(service, 'metadata');
  return `${text(metadata, 'creationTimestamp')} ${text(metadata, 'name')}`;
}

/** The addresses of a service; none if it is headless. */
export function serviceAddresses(service: JsonObject): readonly string[] {
  const spec = child(service, 'spec');
  const all = texts(spec, 'clusterIPs');
  return (all.length > 0 ? all : [text(spec, 'clusterIP')]).filter(
    (address) => address !== '' && address !== 'None',
  );
}

/** The selector of a Service in the API's syntax; empty if it has none. */
export function selectorOf(service: JsonObject): string {
  const pairs = Object.entries(textMap(child(service, 'spec'), 'selector'));
  return pairs.map(([key, value]) => `${key}=${value}`).join(',');
}
