/**
 * Computes the resolv.conf that the kubelet writes for a pod. It merges dnsPolicy, dnsConfig, the kubelet's clusterDNS
 * and clusterDomain, and the node's own resolv.conf, and applies Kubernetes' limits (pkg/kubelet/network/dns).
 */
import { linesOf, wordsOf } from './resolv-conf.ts';

export type DnsPolicy = 'ClusterFirst' | 'ClusterFirstWithHostNet' | 'Default' | 'None';

export interface DnsConfig {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly { readonly name: string; readonly value?: string | undefined }[];
}

/** The fields in a pod spec that determine its resolv.conf. */
export interface PodDns {
  readonly namespace: string;
  readonly policy: DnsPolicy;
  readonly config: DnsConfig | null;
  readonly hostNetwork: boolean;
}

export interface KubeletDns {
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** The contents of the file in the kubelet's resolvConf, or null if that is empty. */
  readonly nodeResolvConf: string | null;
}

/** The resolv.conf that kubelet writes, with remarks. */
export interface PodResolvConf {
  readonly text: string;
  /** kubelet's own warnings, plus other surprises. */
  readonly warnings: readonly string[];
}

/** Kubernetes' limits (since 1.28) on name servers, search domains, and characters in the search line. */
const mostServers = 3;
const mostSearches = 32;
const longestSearch = 2048;

interface ResolvConfParts {
  servers: string[];
  searches: string[];
  options: string[];
}

export function podResolvConf(pod: PodDns, kubelet: KubeletDns): PodResolvConf {
  const warnings: string[] = [];
  const host = readHost(kubelet.nodeResolvConf);
  let { policy } = pod;
  if (policy === 'ClusterFirst' && pod.hostNetwork) {
    warnings.push(
      'dnsPolicy ClusterFirst means Default for a pod with hostNetwork: use ClusterFirstWithHostNet',
    );
    policy = 'Default';
  }
  if (
    (policy === 'ClusterFirst' || policy === 'ClusterFirstWithHostNet') &&
    kubelet.clusterDns.length === 0
  ) {
    warnings.push('kubelet has no clusterDNS: the pod gets the settings of dnsPolicy Default');
    policy = 'Default';
  }
  const parts = basis(policy, pod, kubelet, host);
  if (pod.config !== null) merge(parts, pod.config);
  if (policy === 'None' && parts.servers.length === 0) {
    warnings.push(
      'dnsPolicy None needs at least one name server in dnsConfig: the API server rejects this pod',
    );
  }
  limit(parts, warnings);
  return { text: write(parts), warnings };
}

function basis(
  policy: DnsPolicy,
  pod: PodDns,
  kubelet: KubeletDns,
  host: ResolvConfParts,
): ResolvConfParts {
  if (policy === 'None') return { servers: [], searches: [], options: [] };
  if (policy === 'Default') return host;
  const domain = kubelet.clusterDomain.replace(/\.$/, '');
  const cluster = domain === '' ? [] : [`${pod.namespace}.svc.${domain}`, `svc.${domain}`, domain];
  return {
    servers: [...kubelet.clusterDns],
    searches: unique([...cluster, ...(kubelet.nodeResolvConf === null ? [] : host.searches)]),
    options: ['ndots:5'],
  };
}

/** Merges dnsConfig. Servers and searches are appended, and options replace those with the same name. */
function merge(parts: ResolvConfParts, config: DnsConfig): void {
  parts.servers = unique([...parts.servers, ...config.nameservers]);
  parts.searches = unique([...parts.searches, ...config.searches]);
  const more = config.options.map(({ name, value }) =>
    value === undefined || value === '' ? name : `${name}:${value}`,
  );
  parts.options = withOptions(parts.options, more);
}

/** The last option with a given name counts. */
function withOptions(options: readonly string[], more: readonly string[]): string[] {
  const byName = new Map(options.map((option) => [option.split(':')[0] ?? '', option]));
  for (const option of more) byName.set(option.split(':')[0] ?? '', option);
  return [...byName.values()];
}

function limit(parts: ResolvConfParts, warnings: string[]): void {
  if (parts.servers.length > mostServers) {
    warnings.push(
      `Nameserver limits were exceeded: only ${parts.servers.slice(0, mostServers).join(' ')} are used`,
    );
    parts.servers = parts.servers.slice(0, mostServers);
  }
  let kept = parts.searches.slice(0, mostSearches);
  while (kept.join(' ').length > longestSearch) kept = kept.slice(0, -1);
  if (kept.length < parts.searches.length) {
    warnings.push(
      `Search Line limits were exceeded: ${parts.searches.length - kept.length} search domains are dropped`,
    );
    parts.searches = kept;
  }
  const line = `search ${parts.searches.join(' ')}`;
  if (line.length > 254) {
    warnings.push(
      `the search line has ${line.length} characters: musl (Alpine) drops lines longer than 254 and then resolves no short name`,
    );
  }
}

function readHost(text: string | null): ResolvConfParts {
  // If resolvConf is empty, the kubelet leaves its pods without DNS.
  if (text === null) return { servers: ['127.0.0.1'], searches: ['.'], options: [] };
  const parts: ResolvConfParts = { servers: [], searches: [], options: [] };
  for (const line of linesOf(text)) {
    const bare = line.trim();
    if (bare.startsWith('#') || bare.startsWith(';')) continue;
    const [keyword, ...words] = wordsOf(bare);
    if (keyword === 'nameserver' && words[0] !== undefined) parts.servers.push(words[0]);
    // Search domains from the node's file are used unchanged, even without a trailing dot, and so is a lone dot.
    else if (keyword === 'search')
      parts.searches = words.map((word) => (word === '.' ? word : word.replace(/\.$/, '')));
    else if (keyword === 'options') parts.options = withOptions(parts.options, words);
  }
  return parts;
}

function write(parts: ResolvConfParts): string {
  const lines: string[] = [];
  if (parts.searches.length > 0) lines.push(`search ${parts.searches.join(' ')}`);
  for (const server of parts.servers) lines.push(`nameserver ${server}`);
  if (parts.options.length > 0) lines.push(`options ${parts.options.join(' ')}`);
  return `${lines.join('\n')}\n`;
}

function unique(items: readonly string[]): string[] {
  return [...new Set(items)];
}
