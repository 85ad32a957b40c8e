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

/** Commands in the order that nft requires, with chains before rules and both before elements. */
interface NftCommands {
  readonly chains: string[];
  readonly rules: string[];
  readonly elements: string[];
  readonly words: NftWords;
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
  const commands: NftCommands = { chains: [], rules: [], elements: [], words };
  writeTop(commands, options);
  for (const traffic of trafficOf(state, options)) writePort(traffic, options, commands);
  const table = `table ${words.ip} kube-proxy`;
  return [
    `add ${table}`,
    `delete ${table}`,
    `add ${table} { comment "rules for kube-proxy" ; }`,
    ...commands.chains,
    ...commands.rules,
    ...new Set(commands.elements),
    '',
  ].join('\n');
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

function addChain(commands: NftCommands, name: string, rest = ''): void {
  commands.chains.push(`add chain ${commands.words.ip} kube-proxy ${name}${rest}`);
}

function addRule(commands: NftCommands, of: string, rule: string, comment = ''): void {
  const commentText = comment === '' ? '' : ` comment "${comment}"`;
  commands.rules.push(`add rule ${commands.words.ip} kube-proxy ${of} ${rule}${commentText}`);
}

function addTable(commands: NftCommands, kind: 'set' | 'map', name: string, rest: string): void {
  commands.chains.push(`add ${kind} ${commands.words.ip} kube-proxy ${name} { ${rest} }`);
}

function addElement(
  commands: NftCommands,
  of: string,
  key: string,
  value = '',
  comment = '',
): void {
  const commentText = comment === '' ? '' : ` comment "${comment}"`;
  const verdict = value === '' ? '' : ` : ${value}`;
  commands.elements.push(
    `add element ${commands.words.ip} kube-proxy ${of} { ${key}${commentText}${verdict} }`,
  );
}

function writeTop(commands: NftCommands, options: ProxyOptions): void {
  const { ip, type, notLocalhost, mark } = commands.words;
  const bit = masqueradeMark(options.masqueradeBit);
  const verdicts = `type ${type} . ${portType} : verdict`;
  for (const [name, kind, hook, priority] of baseChains) {
    addChain(commands, name, ` { type ${kind} hook ${hook} priority ${priority} ; }`);
  }
  for (const name of new Set(jumps.map(([, , to]) => to))) addChain(commands, name);
  addChain(
    commands,
    'reject-chain',
    ' { comment "helper for @no-endpoint-services / @no-endpoint-nodeports" ; }',
  );
  const table = (kind: 'set' | 'map', name: string, rest: string, comment: string): void => {
    addTable(commands, kind, name, `${rest} ; comment "${comment}" ;`);
  };
  table(
    'set',
    'hairpin-connections',
    `type ${type} . ${type} . ${portType}`,
    'service hairpin connections',
  );
  table('set', 'cluster-ips', `type ${type}`, 'Active ClusterIPs');
  if (options.nodePortIPs !== null) {
    table('set', 'nodeport-ips', `type ${type}`, 'IPs that accept NodePort traffic');
    for (const each of options.nodePortIPs) addElement(commands, 'nodeport-ips', each);
  }
  table(
    'map',
    'no-endpoint-services',
    verdicts,
    'vmap to drop or reject packets to services with no endpoints',
  );
  table(
    'map',
    'no-endpoint-nodeports',
    `type ${portType} : verdict`,
    'vmap to drop or reject packets to service nodeports with no endpoints',
  );
  table(
    'map',
    'firewall-ips',
    verdicts,
    'destinations that are subject to LoadBalancerSourceRanges',
  );
  table('map', 'service-ips', verdicts, 'ClusterIP, ExternalIP and LoadBalancer IP traffic');
  table('map', 'service-nodeports', `type ${portType} : verdict`, 'NodePort traffic');

  for (const [from, condition, to] of jumps) addRule(commands, from, `${condition}jump ${to}`);
  addRule(
    commands,
    'masquerading',
    `mark and ${bit} != 0 mark set mark xor ${bit} masquerade fully-random`,
  );
  addRule(
    commands,
    'masquerading',
    `ct status dnat ${ip} saddr . ${ip} daddr . meta l4proto . th dport @hairpin-connections masquerade fully-random`,
  );
  addRule(
    commands,
    'cluster-ips-check',
    `${ip} daddr @cluster-ips reject`,
    'Reject traffic to invalid ports of ClusterIPs',
  );
  addRule(commands, 'reject-chain', 'reject');
  const by = `${ip} daddr . meta l4proto . th dport vmap @`;
  addRule(commands, 'service-endpoints-check', `${by}no-endpoint-services`);
  const ofNode = options.nodePortIPs === null ? notLocalhost : `${ip} daddr @nodeport-ips`;
  addRule(
    commands,
    'nodeport-endpoints-check',
    `${ofNode} meta l4proto . th dport vmap @no-endpoint-nodeports`,
  );
  addRule(commands, 'firewall-check', `${by}firewall-ips`);
  if (options.masqueradeAll) {
    addRule(
      commands,
      'services',
      `${ip} daddr @cluster-ips ${mark}`,
      'masquerade all clusterIP traffic',
    );
  } else if (options.clusterCIDR !== null) {
    addRule(
      commands,
      'services',
      `${ip} daddr @cluster-ips ${ip} saddr != ${options.clusterCIDR} ${mark}`,
      'masquerade clusterIP traffic from outside cluster',
    );
  }
  addRule(commands, 'services', `${by}service-ips`);
  const local = options.nodePortIPs === null ? `fib daddr type local ${ofNode}` : ofNode;
  addRule(commands, 'services', `${local} meta l4proto . th dport vmap @service-nodeports`);
}

function writePort(traffic: Traffic, options: ProxyOptions, commands: NftCommands): void {
  const { port, cluster, local } = traffic;
  const chains = nftablesChains(port);
  writeElements(traffic, chains, commands);
  if (traffic.external) writeOutside(traffic, chains, options, commands);
  if (hasFirewall(traffic)) writeFirewall(traffic, chains, commands);
  if (port.affinitySeconds !== null) writeAffinity(traffic, commands);
  for (const [from, endpoints] of [
    [chains.cluster, cluster],
    [chains.local, local],
  ] as const) {
    if (endpoints.length === 0) continue;
    addChain(commands, from);
    if (port.affinitySeconds === null) writeChoice(traffic, from, endpoints, commands);
    else writeStickyChoice(traffic, from, endpoints, commands);
  }
}

function hasFirewall({ port }: Traffic): boolean {
  return port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0;
}

function writeElements(traffic: Traffic, chains: PortChains, commands: NftCommands): void {
  const { port, any, refusedInside, refusedOutside, reachable } = traffic;
  const verdict = (how: FilterRefusal): string => (how === 'reject' ? 'goto reject-chain' : how);
  const key = (address: string): string => `${address} . ${port.protocol} . ${port.port}`;
  for (const { ip, port: number, node } of reachable) {
    if (node === '' || node !== traffic.node) continue;
    addElement(commands, 'hairpin-connections', `${ip} . ${ip} . ${port.protocol} . ${number}`);
  }
  addElement(commands, 'cluster-ips', port.clusterIP);
  if (refusedInside === null) {
    const target = port.internalPolicyLocal ? chains.local : chains.cluster;
    addElement(commands, 'service-ips', key(port.clusterIP), `goto ${target}`);
  } else {
    addElement(
      commands,
      'no-endpoint-services',
      key(port.clusterIP),
      verdict(refusedInside),
      port.name,
    );
  }
  for (const address of [...port.externalIPs, ...port.loadBalancerIPs]) {
    if (any) addElement(commands, 'service-ips', key(address), `goto ${chains.external}`);
    if (refusedOutside !== null) {
      addElement(
        commands,
        'no-endpoint-services',
        key(address),
        verdict(refusedOutside),
        port.name,
      );
    }
  }
  if (hasFirewall(traffic)) {
    for (const address of port.loadBalancerIPs) {
      addElement(commands, 'firewall-ips', key(address), `goto ${chains.firewall}`);
    }
  }
  if (port.nodePort === 0) return;
  const nodeKey = `${port.protocol} . ${port.nodePort}`;
  if (any) addElement(commands, 'service-nodeports', nodeKey, `goto ${chains.external}`);
  if (refusedOutside !== null) {
    addElement(commands, 'no-endpoint-nodeports', nodeKey, verdict(refusedOutside), port.name);
  }
}

function writeOutside(
  { port, refusedOutside }: Traffic,
  chains: PortChains,
  { clusterCIDR }: ProxyOptions,
  commands: NftCommands,
): void {
  const { ip, mark } = commands.words;
  const rule = (text: string, comment = ''): void => {
    addRule(commands, chains.external, text, comment);
  };
  addChain(commands, chains.external);
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
  commands: NftCommands,
): void {
  const allowed = [...port.sourceRanges, ...(nodeAllowed ? port.loadBalancerIPs : [])];
  addChain(commands, firewall);
  addRule(commands, firewall, `${commands.words.ip} saddr != { ${allowed.join(' , ')} } drop`);
}

/** Writes a chain for each endpoint that remembers its clients until a timeout. */
function writeAffinity({ port, reachable }: Traffic, commands: NftCommands): void {
  const { ip, type } = commands.words;
  for (const endpoint of reachable) {
    const { chain, affinity } = nftablesEndpointNames(port, endpoint);
    addChain(commands, chain);
    addTable(
      commands,
      'set',
      affinity,
      `type ${type} ; flags dynamic,timeout ; timeout ${port.affinitySeconds}s ;`,
    );
    addRule(commands, chain, `update @${affinity} { ${ip} saddr }`);
    addRule(commands, chain, `meta l4proto ${port.protocol} dnat to ${endpoint.key}`);
  }
}

function writeChoice(
  { port }: Traffic,
  from: string,
  endpoints: readonly ServiceEndpoint[],
  commands: NftCommands,
): void {
  const elements = endpoints.map(({ ip, port: number }, at) => `${at} : ${ip} . ${number}`);
  addRule(
    commands,
    from,
    `meta l4proto ${port.protocol} dnat ${commands.words.ip} addr . port to numgen random mod ${endpoints.length} map { ${elements.join(' , ')} }`,
  );
}

function writeStickyChoice(
  { port }: Traffic,
  from: string,
  endpoints: readonly ServiceEndpoint[],
  commands: NftCommands,
): void {
  const named = endpoints.map((endpoint) => nftablesEndpointNames(port, endpoint));
  for (const { chain, affinity } of named) {
    addRule(commands, from, `${commands.words.ip} saddr @${affinity} goto ${chain}`);
  }
  const elements = named.map(({ chain }, at) => `${at} : goto ${chain}`);
  addRule(commands, from, `numgen random mod ${endpoints.length} vmap { ${elements.join(' , ')} }`);
}
