/** The command line of `ndots lab`. */
import { nearest } from '../base/problem.ts';
import { parseNet } from '../base/ip.ts';
import type { ProxyOptions } from '../dataplane/traffic.ts';
import { defaultProxy } from '../dataplane/traffic.ts';
import { flag, group, one, type OptionValue, type Usage } from './option.ts';
import { parseOptions } from './option-parse.ts';
import { addresses, choice, file, integer, text, usage } from './option-values.ts';

/** What `ndots lab` does: its first word. */
export const labActions = ['rules'] as const;
/** One of them. */
export type LabAction = (typeof labActions)[number];

/** What a command line of `ndots lab` says. */
export interface LabOptions {
  readonly action: LabAction;
  readonly words: readonly string[];
  readonly rules: RulesOptions;
}

/** What `ndots lab rules` prints. */
export interface RulesOptions {
  readonly mode: 'iptables' | 'nftables';
  readonly manifests: string | null;
  readonly kubeconfig: string | null;
  readonly context: string | null;
  readonly proxy: ProxyOptions;
  /** Names of chains as old kube-proxies made them. */
  readonly oldNames: boolean;
}

const range: OptionValue<string> = {
  placeholder: 'CIDR',
  read(given, name) {
    if (given.includes('/') && parseNet(given) !== null) return given;
    throw usage(`${name} takes a range such as 10.244.0.0/16, not "${given}"`);
  },
};

const table = {
  ...group('Rules (rules)', {
    mode: one('-m, --mode', choice('MODE', ['iptables', 'nftables']), 'of kube-proxy (iptables)'),
    manifests: one('--manifests', file('DIR'), 'services and endpoints of these manifests'),
    kubeconfig: one('--kubeconfig', file(), 'another kubeconfig than KUBECONFIG or ~/.kube/config'),
    context: one('--context', text('NAME'), 'context of the kubeconfig'),
    ipv6: flag('-6', 'the rules of IPv6'),
    node: one('--node', text('NAME'), 'the node that the rules are for'),
    zone: one('--zone', text('NAME'), 'its topology zone'),
    nodeIP: one('--node-ip', text('IP'), 'its address'),
    clusterCIDR: one('--cluster-cidr', range, 'addresses of pods; others are masqueraded'),
    masqueradeAll: flag('--masquerade-all', 'masquerade all traffic to cluster addresses'),
    masqueradeBit: one('--masquerade-bit', integer('BIT', 0, 31), 'bit of the mark (14)'),
    nodePortIPs: one('--nodeport-ips', addresses, 'addresses that take node ports (all)'),
    noLocalhost: flag('--no-localhost-nodeports', 'node ports are not on 127.0.0.1'),
    oldNames: flag('--old-names', 'names of chains as kube-proxy 1.4 made them'),
  }),
};

/** The help of `ndots lab`. */
export const labUsage: Usage = {
  synopsis: 'rules [NAMESPACE/SERVICE…]',
  examples: [
    ['rules --manifests cluster/', 'for iptables-restore'],
    ['rules --manifests cluster/ critical-app/backend', 'of one service'],
    ['rules -m nftables --node node-1', 'of your cluster, for nft -f'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'rules prints what kube-proxy of Kubernetes 1.36 writes for these services and endpoints, chain by chain. Load it where it does no harm: iptables-restore --noflush, or nft -f -, in a network namespace.',
    'Exit codes: 0 done, 2 it could not be found out, 3 wrong usage.',
  ],
  words: { words: labActions },
};

/** Reads the words behind `ndots lab`. */
export function parseLabOptions(words: readonly string[]): LabOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [given = '', ...others] = rest;
  const action = labActions.find((each) => each === given);
  if (action === undefined) {
    const text = given === '' ? 'what is to be done?' : `"${given}" is not one of its actions`;
    const meant = nearest(given, labActions);
    throw usage(
      text,
      meant === null ? `Known: ${labActions.join(', ')}` : `Did you mean ${meant}?`,
    );
  }
  if (values.manifests !== null && (values.kubeconfig ?? values.context) !== null)
    throw usage('--manifests and --kubeconfig or --context exclude each other');
  return {
    action,
    words: others,
    rules: {
      mode: values.mode ?? 'iptables',
      manifests: values.manifests,
      kubeconfig: values.kubeconfig,
      context: values.context,
      oldNames: values.oldNames,
      proxy: {
        family: values.ipv6 ? 'IPv6' : 'IPv4',
        node: values.node ?? '',
        zone: values.zone ?? '',
        nodeIP: values.nodeIP,
        clusterCIDR: values.clusterCIDR,
        masqueradeAll: values.masqueradeAll,
        masqueradeBit: values.masqueradeBit ?? defaultProxy.masqueradeBit,
        localhostNodePorts: !values.ipv6 && !values.noLocalhost,
        nodePortIPs: values.nodePortIPs,
      },
    },
  };
}
