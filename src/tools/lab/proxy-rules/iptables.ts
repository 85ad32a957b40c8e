/** Generates the rules that kube-proxy writes in iptables mode, as input for `iptables-restore --noflush`. */
import { iptablesChains, iptablesEndpointChain, type PortChains } from './chain-names.ts';
import type { ServiceEndpoint } from './endpoints.ts';
import type { ProxiedPort } from './service-port.ts';
import {
  countEndpoints,
  masqueradeMark,
  trafficOf,
  type ClusterState,
  type ProxyOptions,
  type Traffic,
} from './traffic.ts';

/** If there are more endpoints than this, kube-proxy omits comments in endpoint rules. */
const COMMENTED_ENDPOINTS_MAX = 1000;

/** Rules for both tables, one per line, in chain order. */
interface IptablesTables {
  readonly filterChains: string[];
  readonly filter: string[];
  readonly natChains: string[];
  readonly nat: string[];
}

interface Context {
  readonly options: ProxyOptions;
  readonly mark: string;
  readonly commented: boolean;
}

/**
 * Returns all of kube-proxy's chains and their rules. They have no effect until something jumps to them, see
 * `iptablesJumps`.
 * @returns two tables, each with a COMMIT
 */
export function iptablesRules(state: ClusterState, options: ProxyOptions): string {
  const context = {
    options,
    mark: masqueradeMark(options.masqueradeBit),
    commented: countEndpoints(state) <= COMMENTED_ENDPOINTS_MAX,
  };
  const tables = topChains(context);
  for (const traffic of trafficOf(state, options)) writePort(traffic, context, tables);
  writeEnds(context, tables);
  return [
    '*filter',
    ...tables.filterChains,
    ...tables.filter,
    'COMMIT',
    '*nat',
    ...tables.natChains,
    ...tables.nat,
    'COMMIT',
    '',
  ].join('\n');
}

const NEW = '-m conntrack --ctstate NEW ';

/**
 * Table, kernel chain, kube-proxy chain without `KUBE-`, extra conditions, and comment. Each is inserted before those
 * above it.
 */
const jumps: readonly (readonly [string, string, string, string, string])[] = [
  ['filter', 'INPUT', 'EXTERNAL-SERVICES', NEW, 'kubernetes externally-visible service portals'],
  ['filter', 'FORWARD', 'EXTERNAL-SERVICES', NEW, 'kubernetes externally-visible service portals'],
  ['filter', 'INPUT', 'NODEPORTS', '', 'kubernetes health check service ports'],
  ['filter', 'FORWARD', 'SERVICES', NEW, 'kubernetes service portals'],
  ['filter', 'OUTPUT', 'SERVICES', NEW, 'kubernetes service portals'],
  ['filter', 'FORWARD', 'FORWARD', '', 'kubernetes forwarding rules'],
  ['filter', 'INPUT', 'PROXY-FIREWALL', NEW, 'kubernetes load balancer firewall'],
  ['filter', 'OUTPUT', 'PROXY-FIREWALL', NEW, 'kubernetes load balancer firewall'],
  ['filter', 'FORWARD', 'PROXY-FIREWALL', NEW, 'kubernetes load balancer firewall'],
  ['nat', 'OUTPUT', 'SERVICES', '', 'kubernetes service portals'],
  ['nat', 'PREROUTING', 'SERVICES', '', 'kubernetes service portals'],
  ['nat', 'POSTROUTING', 'POSTROUTING', '', 'kubernetes postrouting rules'],
  ['filter', 'INPUT', 'FIREWALL', '', ''],
  ['filter', 'OUTPUT', 'FIREWALL', '', ''],
];

/**
 * Returns the rules that send packets to kube-proxy's chains. Restore them once, after those chains have been created.
 */
export function iptablesJumps(): string {
  const lines = ['*filter', ':KUBE-FIREWALL - [0:0]'];
  for (const table of ['filter', 'nat']) {
    if (table === 'nat') lines.push('COMMIT', '*nat');
    for (const [of, from, to, match, text] of jumps) {
      const why = text === '' ? '' : `${comment(text)} `;
      if (of === table) lines.push(`-I ${from} ${match}${why}-j KUBE-${to}`);
    }
  }
  return [...lines, 'COMMIT', ''].join('\n');
}

function chain(name: string): string {
  return `:${name} - [0:0]`;
}

function comment(text: string): string {
  return `-m comment --comment "${text}"`;
}

function topChains({ options, mark }: Context): IptablesTables {
  const isLocalhost = options.family === 'IPv4' && options.localhostNodePorts;
  return {
    filterChains: [
      ...['SERVICES', 'EXTERNAL-SERVICES', 'FORWARD', 'NODEPORTS', 'PROXY-FIREWALL'],
      ...(isLocalhost ? ['FIREWALL'] : []),
    ].map((name) => chain(`KUBE-${name}`)),
    filter: isLocalhost
      ? [
          `-A KUBE-FIREWALL ${comment('block incoming localnet connections')} -d 127.0.0.0/8 ! -s 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`,
        ]
      : [],
    natChains: ['SERVICES', 'NODEPORTS', 'POSTROUTING', 'MARK-MASQ'].map((name) =>
      chain(`KUBE-${name}`),
    ),
    nat: [
      `-A KUBE-POSTROUTING -m mark ! --mark ${mark}/${mark} -j RETURN`,
      `-A KUBE-POSTROUTING -j MARK --xor-mark ${mark}`,
      `-A KUBE-POSTROUTING ${comment('kubernetes service traffic requiring SNAT')} -j MASQUERADE --random-fully`,
      `-A KUBE-MARK-MASQ -j MARK --or-mark ${mark}`,
    ],
  };
}

function writePort(traffic: Traffic, context: Context, tables: IptablesTables): void {
  const chains = iptablesChains(traffic.port);
  writeCapture(traffic, chains, tables);
  writeInside(traffic, chains, context, tables);
  if (traffic.external) writeOutside(traffic, chains, context, tables);
  if (hasFirewall(traffic)) writeFirewall(traffic, chains, tables);
  writeEndpoints(traffic, chains, context, tables);
}

function hasFirewall({ port, any }: Traffic): boolean {
  return any && port.loadBalancerIPs.length > 0 && port.sourceRanges.length > 0;
}

/** Writes the rules for traffic to the service port, by address and by node port. */
function writeCapture(traffic: Traffic, chains: PortChains, tables: IptablesTables): void {
  const { port, any, refusedInside, refusedOutside } = traffic;
  const { name, protocol } = port;
  const to = (address: string): string =>
    `-m ${protocol} -p ${protocol} -d ${address} --dport ${port.port}`;
  const why = comment(any ? `${name} has no local endpoints` : `${name} has no endpoints`);
  const refuse = (of: string, match: string, how: string): void => {
    tables.filter.push(`-A ${of} ${why} ${match} -j ${how.toUpperCase()}`);
  };
  if (refusedInside === null) {
    const target = port.internalPolicyLocal ? chains.local : chains.cluster;
    tables.nat.push(
      `-A KUBE-SERVICES ${comment(`${name} cluster IP`)} ${to(port.clusterIP)} -j ${target}`,
    );
  } else refuse('KUBE-SERVICES', to(port.clusterIP), refusedInside);

  for (const [kind, addresses, target] of [
    ['external IP', port.externalIPs, chains.external],
    [
      'loadbalancer IP',
      port.loadBalancerIPs,
      hasFirewall(traffic) ? chains.firewall : chains.external,
    ],
  ] as const) {
    for (const address of addresses) {
      if (any) {
        tables.nat.push(
          `-A KUBE-SERVICES ${comment(`${name} ${kind}`)} ${to(address)} -j ${target}`,
        );
      }
      if (kind === 'loadbalancer IP' && hasFirewall(traffic)) {
        tables.filter.push(
          `-A KUBE-PROXY-FIREWALL ${comment(`${name} traffic not accepted by ${chains.firewall}`)} ${to(address)} -j DROP`,
        );
      }
      if (refusedOutside !== null) refuse('KUBE-EXTERNAL-SERVICES', to(address), refusedOutside);
    }
  }
  if (port.nodePort !== 0) {
    const match = `-m ${protocol} -p ${protocol} --dport ${port.nodePort}`;
    if (any) {
      tables.nat.push(
        `-A KUBE-NODEPORTS -m comment --comment ${name} ${match} -j ${chains.external}`,
      );
    }
    if (refusedOutside !== null) {
      refuse('KUBE-EXTERNAL-SERVICES', `-m addrtype --dst-type LOCAL ${match}`, refusedOutside);
    }
  }
  if (port.healthCheckNodePort !== 0) {
    tables.filter.push(
      `-A KUBE-NODEPORTS ${comment(`${name} health check node port`)} -m tcp -p tcp --dport ${port.healthCheckNodePort} -j ACCEPT`,
    );
  }
}

/** Masquerades traffic to the cluster address unless it comes from a pod, so that replies come back. */
function writeInside(
  { port, refusedInside }: Traffic,
  chains: PortChains,
  { options }: Context,
  { nat }: IptablesTables,
): void {
  const { clusterCIDR, masqueradeAll } = options;
  if (refusedInside !== null || (!masqueradeAll && clusterCIDR === null)) return;
  const { name, protocol, clusterIP } = port;
  const target = port.internalPolicyLocal ? chains.local : chains.cluster;
  const from = masqueradeAll ? '' : `! -s ${clusterCIDR} `;
  nat.push(
    `-A ${target} ${comment(`${name} cluster IP`)} -m ${protocol} -p ${protocol} -d ${clusterIP} --dport ${port.port} ${from}-j KUBE-MARK-MASQ`,
  );
}

/** Writes the rules for traffic to any address other than the cluster address. */
function writeOutside(
  { port, refusedOutside }: Traffic,
  chains: PortChains,
  { options }: Context,
  { nat, natChains }: IptablesTables,
): void {
  const { name } = port;
  const { external, cluster } = chains;
  const rule = (text: string, rest: string): void => {
    nat.push(`-A ${external} ${comment(`${text} for ${name} external destinations`)} ${rest}`);
  };
  natChains.push(chain(external));
  if (!port.externalPolicyLocal) rule('masquerade traffic', '-j KUBE-MARK-MASQ');
  else {
    // Pods and the node itself are internal, so the external traffic policy does not apply to them.
    if (options.clusterCIDR !== null) {
      rule('pod traffic', `-s ${options.clusterCIDR} -j ${cluster}`);
    }
    rule('masquerade LOCAL traffic', '-m addrtype --src-type LOCAL -j KUBE-MARK-MASQ');
    rule('route LOCAL traffic', `-m addrtype --src-type LOCAL -j ${cluster}`);
  }
  if (refusedOutside === null) {
    nat.push(`-A ${external} -j ${port.externalPolicyLocal ? chains.local : cluster}`);
  }
}

/**
 * Limits which sources may use the load balancer's address. KUBE-PROXY-FIREWALL drops packets at the end of the chain.
 */
function writeFirewall(
  { port, nodeAllowed }: Traffic,
  { firewall, external }: PortChains,
  { nat, natChains }: IptablesTables,
): void {
  natChains.push(chain(firewall));
  const allowed = [...port.sourceRanges, ...(nodeAllowed ? port.loadBalancerIPs : [])];
  for (const source of allowed) {
    nat.push(
      `-A ${firewall} ${comment(`${port.name} loadbalancer IP`)} -s ${source} -j ${external}`,
    );
  }
  nat.push(
    `-A ${firewall} ${comment(`other traffic to ${port.name} will be dropped by KUBE-PROXY-FIREWALL`)}`,
  );
}

function writeEndpoints(
  { port, cluster, local, reachable }: Traffic,
  chains: PortChains,
  { commented }: Context,
  { nat, natChains }: IptablesTables,
): void {
  const names = new Map(reachable.map((one) => [one.key, iptablesEndpointChain(port, one)]));
  for (const [from, endpoints] of [
    [chains.cluster, cluster],
    [chains.local, local],
  ] as const) {
    if (endpoints.length === 0) continue;
    natChains.push(chain(from));
    nat.push(...choices(port, from, endpoints, names, commented));
  }
  for (const { ip, key } of reachable) {
    const own = names.get(key)!;
    const begin = commented ? `-A ${own} -m comment --comment ${port.name}` : `-A ${own}`;
    const recent = port.affinitySeconds === null ? '' : ` -m recent --name ${own} --set`;
    natChains.push(chain(own));
    // A pod that connects to itself would reject replies from its own address.
    nat.push(`${begin} -s ${ip} -j KUBE-MARK-MASQ`);
    nat.push(
      `${begin}${recent} -m ${port.protocol} -p ${port.protocol} -j DNAT --to-destination ${key}`,
    );
  }
}

/** Picks one endpoint with equal probability. When n are left, the first one is picked with probability 1/n. */
function choices(
  port: ProxiedPort,
  from: string,
  endpoints: readonly ServiceEndpoint[],
  names: ReadonlyMap<string, string>,
  commented: boolean,
): readonly string[] {
  const begins = endpoints.map(({ key }) =>
    commented ? `-A ${from} ${comment(`${port.name} -> ${key}`)}` : `-A ${from}`,
  );
  const lines: string[] = [];
  if (port.affinitySeconds !== null) {
    endpoints.forEach(({ key }, at) => {
      const to = names.get(key)!;
      lines.push(
        `${begins[at]!} -m recent --name ${to} --rcheck --seconds ${port.affinitySeconds} --reap -j ${to}`,
      );
    });
  }
  endpoints.forEach(({ key }, at) => {
    const left = endpoints.length - at;
    const chance =
      left === 1 ? '' : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`;
    lines.push(`${begins[at]!}${chance} -j ${names.get(key)!}`);
  });
  return lines;
}

/** Writes the rules that come after those for all service ports. */
function writeEnds({ options, mark }: Context, { filter, nat }: IptablesTables): void {
  const why = comment(
    'kubernetes service nodeports; NOTE: this must be the last rule in this chain',
  );
  const isIPv6 = options.family === 'IPv6';
  if (options.nodePortIPs === null) {
    const except = isIPv6 ? '! -d ::1/128 ' : options.localhostNodePorts ? '' : '! -d 127.0.0.0/8 ';
    nat.push(`-A KUBE-SERVICES ${why} -m addrtype --dst-type LOCAL ${except}-j KUBE-NODEPORTS`);
  } else {
    for (const ip of options.nodePortIPs) {
      nat.push(`-A KUBE-SERVICES ${why} -d ${ip} -j KUBE-NODEPORTS`);
    }
  }
  filter.push(
    '-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP',
    `-A KUBE-FORWARD ${comment('kubernetes forwarding rules')} -m mark --mark ${mark}/${mark} -j ACCEPT`,
    `-A KUBE-FORWARD ${comment('kubernetes forwarding conntrack rule')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
  );
}
