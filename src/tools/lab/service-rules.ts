/**
 * Writes kube-proxy's rules on a lab node in either mode, along with a CNI plugin's rules for packets that leave the
 * cluster.
 */
import { clusterState, type ProxyObjects } from './proxy-rules/cluster-state.ts';
import { iptablesJumps, iptablesRules } from './proxy-rules/iptables.ts';
import { nftablesRules } from './proxy-rules/nftables.ts';
import { defaultProxy } from './proxy-rules/traffic.ts';
import type { LabNetwork, Machine } from './network.ts';
import type { RuleMode } from './cluster-plan.ts';

/** Returns a node's rules as input for `iptables-restore --noflush` or `nft -f -`. */
export function rulesText(
  mode: RuleMode,
  objects: ProxyObjects,
  { name, addresses }: Machine,
): string {
  const nodeIP = addresses.find((address) => !address.includes(':')) ?? null;
  const state = clusterState(objects, 'IPv4');
  const options = { ...defaultProxy, node: name, nodeIP };
  return mode === 'nftables' ? nftablesRules(state, options) : iptablesRules(state, options);
}

export function applyRules(network: LabNetwork, mode: RuleMode, node: string, text: string): void {
  network.run(
    node,
    mode === 'nftables' ? ['nft', '-f', '-'] : ['iptables-restore', '--noflush'],
    text,
  );
}

/**
 * Prepares a node for its first service rules by adding jumps to kube-proxy's chains, and source address translation
 * for packets that leave the cluster.
 */
export function prepareNode(
  network: LabNetwork,
  mode: RuleMode,
  node: string,
  outside: readonly string[],
): void {
  const hosts = outside.filter((address) => !address.includes(':'));
  if (mode === 'nftables') {
    const rules = `table ip ndots-lab-leave {
  chain postrouting {
    type nat hook postrouting priority 90; policy accept;
    ip daddr { ${hosts.join(', ')} } masquerade
  }
}
`;
    return applyRules(network, mode, node, rules);
  }
  const lines = hosts.map((address) => `-A POSTROUTING -d ${address} -j MASQUERADE`);
  applyRules(network, mode, node, `*nat\n${lines.join('\n')}\nCOMMIT\n`);
  const none = clusterState({ services: [], slices: [] }, 'IPv4');
  applyRules(network, mode, node, `${iptablesRules(none, defaultProxy)}${iptablesJumps()}`);
}
