/**
 * Generates the rules that kube-proxy writes in nftables mode, as input for `nft -f`. They form one table, which is
 * replaced as a whole.
 */
import { nftablesChains, nftablesEndpointNames, type PortChains } from './chain-names.ts';
import type { ServiceEndpoint } from './endpoints.ts';
import {
  masqueradeMark,
  trafficOf,
  type ClusterState,
  type ProxyOptions,
  type FilterRefusal,
  type Traffic,
} from './traffic.ts';

/** nft keywords that depend on the address family. */
interface NftWords {
  /** Precedes `saddr` and `daddr`; also the table's family. */
  readonly ip: 'ip' | 'ip6';
  readonly type: 'ipv4_addr' | 'ipv6_addr';
  readonly notLocalhost: string;
  /** Marks a packet for masquerading. */
  readonly mark: string;
}

/** Commands for the table, in the order that nft requires: chains before rules, and both before elements. */
class NftTable {
  readonly words: NftWords;
  readonly #chains: string[] = [];
  readonly #rules: string[] = [];
  readonly #elements = new Set<string>();

  constructor(words: NftWords) {
    this.words = words;
  }

  chain(name: string, rest = ''): void {
    this.#chains.push(`add chain ${this.words.ip} kube-proxy ${name}${rest}`);
  }

  rule(of: string, rule: string, comment = ''): void {
    this.#rules.push(`add rule ${this.words.ip} kube-proxy ${of} ${rule}${commentText(comment)}`);
  }

  add(kind: 'set' | 'map', name: string, rest: string): void {
    this.#chains.push(`add ${kind} ${this.words.ip} kube-proxy ${name} { ${rest} }`);
  }

  element(of: string, key: string, value = '', comment = ''): void {
    const inner = `${key}${commentText(comment)}${value === '' ? '' : ` : ${value}`}`;
    this.#elements.add(`add element ${this.words.ip} kube-proxy ${of} { ${inner} }`);
  }

  /** Returns the commands as a single transaction that replaces the whole table. */
  get text(): string {
    const table = `table ${this.words.ip} kube-proxy`;
    return [
      `add ${table}`,
      `delete ${table}`,
      `add ${table} { comment "rules for kube-proxy" ; }`,
      ...this.#chains,
      ...this.#rules,
      ...this.#elements,
      '',
    ].join('\n');
  }
}

function commentText(comment: string): string {
  return comment === '' ? '' : ` comment "${comment}"`;
}

/** Types of map keys, which consist of address, protocol and port, or only the last two. */
const portType = 'inet_proto . inet_service';

/** Returns kube-proxy's entire table for one address family as a single transaction. */
export function nftablesRules(state: ClusterState, options: ProxyOptions): string {
  const isIPv4 = options.family === 'IPv4';
  const words: NftWords = {
    ip: isIPv4 ? 'ip' : 'ip6',
    type: isIPv4 ? 'ipv4_addr' : 'ipv6_addr',
    notLocalhost: isIPv4 ? 'ip daddr != 127.0.0.0/8' : 'ip6 daddr != ::1',
    mark: `mark set mark or ${masqueradeMark(options.masqueradeBit)}`,
  };
  const table = new NftTable(words);
  writeTop(table, options);
  for (const traffic of trafficOf(state, options)) writePort(traffic, options, table);
  return table.text;
}

/** Chain, type, hook, priority (dnat -100, snat 100, filter 0). */
const baseChains = [
  ['filter-prerouting-pre-dnat', 'filter', 'prerouting', -110],
  ['filter-output-pre-dnat', 'filter', 'output', -110],
  ['filter-input', 'filter', 'input', 0],
  ['filter-forward', 'filter', 'forward', 0],
  ['filter-output', 'filter', 'output', 0],
  ['nat-prerouting', 'nat', 'prerouting', -100],
  ['nat-output', 'nat', 'output', -100],
  ['nat-postrouting', 'nat', 'postrouting', 100],
] as const;

/** From, condition, to. */
const jumps = [
  ['filter-input', 'ct state new ', 'nodeport-endpoints-check'],
  ['filter-input', 'ct state new ', 'service-endpoints-check'],
  ['filter-forward', 'ct state new ', 'service-endpoints-check'],
  ['filter-output', 'ct state new ', 'service-endpoints-check'],
  ['filter-prerouting-pre-dnat', 'ct state new ', 'firewall-check'],
  ['filter-output-pre-dnat', 'ct state new ', 'firewall-check'],
  ['nat-output', '', 'services'],
  ['nat-prerouting', '', 'services'],
  ['nat-postrouting', '', 'masquerading'],
  ['filter-forward', 'ct state new ', 'cluster-ips-check'],
  ['filter-output', 'ct state new ', 'cluster-ips-check'],
] as const;

function writeTop(table: NftTable, options: ProxyOptions): void {
  const { ip, type, notLocalhost, mark } = table.words;
  const bit = masqueradeMark(options.masqueradeBit);
  const verdicts = `type ${type} . ${portType} : verdict`;
  for (const [name, kind, hook, priority] of baseChains) {
    table.chain(name, ` { type ${kind} hook ${hook} priority ${priority} ; }`);
  }
  for (const name of new Set(jumps.map(([, , to]) => to))) table.chain(name);
  table.chain(
    'reject-chain',
    ' { comment "helper for @no-endpoint-services / @no-endpoint-nodeports" ; }',
  );
  const addAll = (kind: 'set' | 'map', name: string, rest: string, comment: string): void => {
    table.add(kind, name, `${rest} ; comment "${comment}" ;`);
  };
  addAll(
    'set',
    'hairpin-connections',
    `type ${type} . ${type} . ${portType}`,
    'service hairpin connections',
  );
  addAll('set', 'cluster-ips', `type ${type}`, 'Active ClusterIPs');
  if (options.nodePortIPs !== null) {
    addAll('set', 'nodeport-ips', `type ${type}`, 'IPs that accept NodePort traffic');
    for (const each of options.nodePortIPs) table.element('nodeport-ips', each);
  }
  addAll(
    'map',
    'no-endpoint-services',
    verdicts,
    'vmap to drop or reject packets to services with no endpoints',
  );
  addAll(
    'map',
    'no-endpoint-nodeports',
    `type ${portType} : verdict`,
    'vmap to drop or reject packets to service nodeports with no endpoints',
  );
  addAll(
    'map',
    'firewall-ips',
    verdicts,
    'destinations that are subject to LoadBalancerSourceRanges',
  );
  addAll('map', 'service-ips', verdicts, 'ClusterIP, ExternalIP and LoadBalancer IP traffic');
  addAll('map', 'service-nodeports', `type ${portType} : verdict`, 'NodePort traffic');

  for (const [from, condition, to] of jumps) table.rule(from, `${condition}jump ${to}`);
  table.rule(
    'masquerading',
    `mark and ${bit} != 0 mark set mark xor ${bit} masquerade fully-random`,
  );
  table.rule(
    'masquerading',
    `ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random`,
  );
  table.rule(
    'cluster-ips-check',
    `${ip} daddr @cluster-ips reject`,
    'Reject traffic to invalid ports of ClusterIPs',
  );
  table.rule('reject-chain', 'reject');
  const by = `${ip} daddr . meta l4proto . th dport vmap @`;
  table.rule('service-endpoints-check', `${by}no-endpoint-services`);
  const ofNode = options.nodePortIPs === null ? notLocalhost : `${ip} daddr @nodeport-ips`;
  table.rule(
    'nodeport-endpoints-check',
    `${ofNode} meta l4proto . th dport vmap @no-endpoint-nodeports`,
  );
  table.rule('firewall-check', `${by}firewall-ips`);
  if (options.masqueradeAll) {
    table.rule('services', `${ip} daddr @cluster-ips ${mark}`, 'masquerade all clusterIP traffic');
  } else if (options.clusterCIDR !== null) {
    table.rule(
      'services',
      `${ip} daddr @cluster-ips ${ip} saddr != ${options.clusterCIDR} ${mark}`,
      'masquerade clusterIP traffic from outside cluster',
    );
  }
  table.rule('services', `${by}service-ips`);
  const local = options.nodePortIPs === null ? `fib daddr type local ${ofNode}` : ofNode;
  table.rule('services', `${local} meta l4proto . th dport vmap @service-nodeports`);
}

function writePort(traffic: Traffic, options: ProxyOptions, table: NftTable): void {
  const { port, cluster, local } = traffic;
  const chains = nftablesChains(port);
  writeElements(traffic, chains, table);
  if (traffic.external) writeOutside(traffic, chains, options, table);
  if (hasFirewall(traffic)) writeFirewall(traffic, chains, table);
  if (port.affinitySeconds !== null) writeAffinity(traffic, table);
  for (const [from, endpoints] of [
    [chains.cluster, cluster],
    [chains.local, local],
  ] as const) {
    if (endpoints.length === 0) continue;
    table.chain(from);
    if (port.affinitySeconds === null) writeChoice(traffic, from, endpoints, table);
    else writeStickyChoice(traffic, from, endpoints, table);
  }
}

function hasFirewall({ port }: Traffic): boolean {
  return port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0;
}

function writeElements(traffic: Traffic, chains: PortChains, table: NftTable): void {
  const { port, any, refusedInside, refusedOutside, reachable } = traffic;
  const verdict = (how: FilterRefusal): string => (how === 'reject' ? 'goto reject-chain' : how);
  const key = (address: string): string => `${address} . ${port.protocol} . ${port.port}`;
  for (const { ip, port: number, node } of reachable) {
    if (node === '' || node !== traffic.node) continue;
    table.element('hairpin-connections', `${ip} . ${ip} . ${port.protocol} . ${number}`);
  }
  table.element('cluster-ips', port.clusterIP);
  if (refusedInside === null) {
    const target = port.internalPolicyLocal ? chains.local : chains.cluster;
    table.element('service-ips', key(port.clusterIP), `goto ${target}`);
  } else {
    table.element('no-endpoint-services', key(port.clusterIP), verdict(refusedInside), port.name);
  }
  for (const address of [...port.externalIPs, ...port.loadBalancerIPs]) {
    if (any) table.element('service-ips', key(address), `goto ${chains.external}`);
    if (refusedOutside !== null) {
      table.element('no-endpoint-services', key(address), verdict(refusedOutside), port.name);
    }
  }
  if (hasFirewall(traffic)) {
    for (const address of port.loadBalancerIPs) {
      table.element('firewall-ips', key(address), `goto ${chains.firewall}`);
    }
  }
  if (port.nodePort === 0) return;
  const nodeKey = `${port.protocol} . ${port.nodePort}`;
  if (any) table.element('service-nodeports', nodeKey, `goto ${chains.external}`);
  if (refusedOutside !== null) {
    table.element('no-endpoint-nodeports', nodeKey, verdict(refusedOutside), port.name);
  }
}

function writeOutside(
  { port, refusedOutside }: Traffic,
  chains: PortChains,
  { clusterCIDR }: ProxyOptions,
  table: NftTable,
): void {
  const { ip, mark } = table.words;
  const rule = (text: string, comment = ''): void => {
    table.rule(chains.external, text, comment);
  };
  table.chain(chains.external);
  if (!port.externalPolicyLocal) rule(mark, 'masquerade');
  else {
    // Pods and the node itself are internal, so the external traffic policy does not apply to them.
    if (clusterCIDR !== null) {
      rule(`${ip} saddr ${clusterCIDR} goto ${chains.cluster}`, 'short-circuit pod traffic');
    }
    rule(`fib saddr type local ${mark}`, 'masquerade local traffic');
    rule(`fib saddr type local goto ${chains.cluster}`, 'short-circuit local traffic');
  }
  if (refusedOutside === null) {
    rule(`goto ${port.externalPolicyLocal ? chains.local : chains.cluster}`);
  }
}

function writeFirewall(
  { port, nodeAllowed }: Traffic,
  { firewall }: PortChains,
  table: NftTable,
): void {
  const allowed = [...port.sourceRanges, ...(nodeAllowed ? port.loadBalancerIPs : [])];
  table.chain(firewall);
  table.rule(firewall, `${table.words.ip} saddr != { ${allowed.join(' , ')} } drop`);
}

/** Writes a chain for each endpoint that remembers its clients until a timeout. */
function writeAffinity({ port, reachable }: Traffic, table: NftTable): void {
  const { ip, type } = table.words;
  for (const endpoint of reachable) {
    const { chain, affinity } = nftablesEndpointNames(port, endpoint);
    table.chain(chain);
    table.add(
      'set',
      affinity,
      `type ${type} ; flags dynamic,timeout ; timeout ${port.affinitySeconds}s ;`,
    );
    table.rule(chain, `update @${affinity} { ${ip} saddr }`);
    table.rule(chain, `meta l4proto ${port.protocol} dnat to ${endpoint.key}`);
  }
}

function writeChoice(
  { port }: Traffic,
  from: string,
  endpoints: readonly ServiceEndpoint[],
  table: NftTable,
): void {
  const elements = endpoints.map(({ ip, port: number }, at) => `${at} : ${ip} . ${number}`);
  table.rule(
    from,
    `meta l4proto ${port.protocol} dnat ${table.words.ip} addr . port to numgen random mod ${endpoints.length} map { ${elements.join(' , ')} }`,
  );
}

function writeStickyChoice(
  { port }: Traffic,
  from: string,
  endpoints: readonly ServiceEndpoint[],
  table: NftTable,
): void {
  const named = endpoints.map((endpoint) => nftablesEndpointNames(port, endpoint));
  for (const { chain, affinity } of named) {
    table.rule(from, `${table.words.ip} saddr @${affinity} goto ${chain}`);
  }
  const elements = named.map(({ chain }, at) => `${at} : goto ${chain}`);
  table.rule(from, `numgen random mod ${endpoints.length} vmap { ${elements.join(' , ')} }`);
}
