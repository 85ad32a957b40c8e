/** The command line of `ndots lab`. */
import { parseNet } from '../../../server/base/ip.ts';
import type { ProxyOptions } from '../../../tools/lab/proxy-rules/traffic.ts';
import { defaultProxy } from '../../../tools/lab/proxy-rules/traffic.ts';
import {
  clusterGiven,
  clusterKeys,
  clusterOptions,
  namesCluster,
  type ClusterOptions,
} from '../cluster-options.ts';
import { flag, group, one, type OfferContext, type OptionValue, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstGiven, parseOptions } from '../option-parse.ts';
import { addresses, choice, file, integer, readAction, text, usage } from '../option-values.ts';

export const labActions = ['list', 'run', 'report', 'init', 'up', 'exec', 'down', 'rules'] as const;
export type LabAction = (typeof labActions)[number];

export interface LabOptions {
  readonly action: LabAction;
  readonly words: readonly string[];
  /** `exec`: the program with its arguments. */
  readonly program: readonly string[];
  /**
   * `up`: Kubernetes objects, or null for the example cluster. `run`: a story file, or null if stories are given by
   * name.
   */
  readonly file: string | null;
  /** `up`: the Corefile for its DNS pods, or null for kubeadm's. */
  readonly corefile: string | null;
  readonly rules: RulesOptions;
  readonly run: RunOptions;
}

export interface RunOptions extends ColourOptions {
  readonly output: 'text' | 'json' | 'html';
  /** A CoreDNS binary to run, or null to run ndots. */
  readonly coredns: string | null;
  readonly pcap: string | null;
  readonly keep: boolean;
  /** kube-proxy's mode. */
  readonly mode: 'iptables' | 'nftables';
  /** Always uses virtual time, even if the story could be played for real. */
  readonly model: boolean;
  /** Output file for the results, which `report` reads. */
  readonly save: string | null;
}

export interface RulesOptions extends ClusterOptions {
  readonly mode: 'iptables' | 'nftables';
  readonly manifests: string | null;
  readonly proxy: ProxyOptions;
  /** Uses the chain names from old kube-proxy versions. */
  readonly oldNames: boolean;
}

const range: OptionValue<string> = {
  placeholder: 'CIDR',
  read(given, name) {
    if (given.includes('/') && parseNet(given) !== null) return given;
    throw usage(`${name} takes a range such as 10.244.0.0/16, not "${given}"`);
  },
};

const server: OptionValue<string | null> = {
  placeholder: 'ndots|coredns=FILE',
  offers: { words: ['ndots', 'coredns='] },
  read(given, name) {
    if (given === 'ndots') return null;
    if (given.startsWith('coredns=') && given.length > 8) return given.slice(8);
    throw usage(`${name} takes ndots or coredns=FILE, not "${given}"`);
  },
};

const table = {
  ...group('Stories (list, run, report)', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json', 'html']), 'text, json or html'),
    server: one('--server', server, 'DNS server in the lab (ndots)'),
    model: flag('--model', 'simulate in virtual time, without root'),
    pcap: one('--pcap', file(), 'save the packets to this file'),
    save: one('--save', file(), 'save the result for ndots lab report'),
    keep: flag('--keep', 'keep the lab running after the story, until Ctrl-C'),
    ...colourOptions,
  }),
  ...group('Services (run, up, rules)', {
    mode: one(
      '-m, --mode',
      choice('MODE', ['iptables', 'nftables']),
      'kube-proxy mode: iptables or nftables (iptables)',
    ),
  }),
  ...group('Files (up, run)', {
    file: one(
      '-f, --file',
      file(),
      'up: Kubernetes objects, file or directory (the example cluster); run: a story',
    ),
    corefile: one('--corefile', file(), 'up: Corefile of the DNS pods (default: kubeadm’s)'),
  }),
  ...group('Rules (rules)', {
    manifests: one('--manifests', file('DIR'), 'directory with services and endpoints'),
    ...clusterOptions,
    ipv6: flag('-6', 'print IPv6 rules'),
    node: one('--node', text('NAME'), 'node of the rules'),
    zone: one('--zone', text('NAME'), 'topology zone of the node'),
    nodeIP: one('--node-ip', text('IP'), 'address of the node'),
    clusterCIDR: one('--cluster-cidr', range, 'pod prefix; other sources are masqueraded'),
    masqueradeAll: flag('--masquerade-all', 'masquerade all traffic to cluster addresses'),
    masqueradeBit: one(
      '--masquerade-bit',
      integer('BIT', 0, 31),
      'bit number of the masquerade mark (14)',
    ),
    nodePortIPs: one('--nodeport-ips', addresses, 'addresses that accept node ports (all)'),
    noLocalhost: flag('--no-localhost-nodeports', 'do not accept node ports on 127.0.0.1'),
    oldNames: flag('--old-names', 'name chains as kube-proxy 1.4 did'),
  }),
};

const ofActions: readonly (readonly [
  keys: readonly (keyof typeof table)[],
  actions: readonly LabAction[],
])[] = [
  [['model', 'pcap', 'save', 'keep'], ['run']],
  [['server'], ['run', 'up']],
  [['mode'], ['run', 'up', 'rules']],
  [['corefile'], ['up']],
  [
    [
      'manifests',
      ...clusterKeys,
      'ipv6',
      'node',
      'zone',
      'nodeIP',
      'clusterCIDR',
      'masqueradeAll',
      'masqueradeBit',
      'nodePortIPs',
      'noLocalhost',
      'oldNames',
    ],
    ['rules'],
  ],
];

export const labUsage: Usage = {
  synopsis: 'list|init|rules | run STORY… | report FILE | up|down | exec POD -- CMD',
  examples: [
    ['run twelve-queries', 'play an incident on this machine'],
    ['run all -o html > stories.html', 'play all, and write a page'],
    ['init > story.yaml', 'print a sample story'],
    ['run -f story.yaml', 'play your own'],
    ['up -f cluster.yaml', 'start a small cluster'],
    ['exec critical-app/client -- dig +search backend', 'run a program in one of its pods'],
    ['rules --manifests cluster/', 'print rules for iptables-restore'],
    ['rules --manifests cluster/ critical-app/backend', 'for one service'],
    ['rules -m nftables --node node-1', 'of your cluster, for nft -f'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'A lab runs in its own network, mount and process namespaces, and needs root. It never touches this machine’s network, and leaves nothing behind when its first process ends. Without root or a needed kernel feature, a story is simulated in virtual time.',
    'rules prints the rules that kube-proxy 1.36 writes for these services and endpoints. Load them in a separate network namespace, with iptables-restore --noflush or nft -f -.',
    'Exit codes: 0 done, or as documented; 1 a story ended differently; 2 could not run; 3 usage error. exec returns its program’s exit code.',
  ],
  words: { words: labWords },
};

/** Suggests actions and, after `run`, stories. */
async function labWords({ before }: OfferContext): Promise<readonly string[]> {
  const action = before.find((word) => labActions.some((each) => each === word));
  if (action === undefined) return labActions;
  if (action !== 'run') return [];
  const { stories } = await import('../../../tools/lab/stories.ts');
  return [...stories.map(({ name }) => name), 'all'];
}

/** Parses the words after `ndots lab`. */
export function parseLabOptions(words: readonly string[]): LabOptions {
  // Words after -- belong to the program.
  const end = words.indexOf('--');
  const program = end < 0 ? [] : words.slice(end + 1);
  const { values, words: rest } = parseOptions(table, end < 0 ? words : words.slice(0, end));
  const [given = '', ...others] = rest;
  const action = readAction(given, labActions);
  if (values.manifests !== null && namesCluster(values))
    throw usage('--manifests cannot be combined with --kubeconfig or --context');
  if (action === 'list' && values.output === 'html') throw usage('list takes -o text or -o json');
  if (values.output !== null && !['list', 'run', 'report'].includes(action))
    throw usage(`${action} does not take -o`);
  for (const [keys, actions] of ofActions) {
    const other = actions.includes(action) ? null : firstGiven(table, values, keys);
    if (other !== null) throw usage(`${action} does not take ${other}`);
  }
  const ofPlay = values.model
    ? firstGiven(table, values, ['server', 'pcap', 'keep', 'mode'])
    : null;
  if (ofPlay !== null) throw usage(`--model sends no packets and does not take ${ofPlay}`);
  checkWords(action, others, program, values.file);
  return {
    action,
    words: others,
    program,
    file: values.file,
    corefile: values.corefile,
    run: {
      output: values.output ?? 'text',
      coredns: values.server,
      pcap: values.pcap,
      keep: values.keep,
      mode: values.mode ?? 'iptables',
      model: values.model,
      save: values.save,
      color: values.color,
      noColor: values.noColor,
    },
    rules: {
      mode: values.mode ?? 'iptables',
      manifests: values.manifests,
      ...clusterGiven(values),
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

function checkWords(
  action: LabAction,
  words: readonly string[],
  program: readonly string[],
  file: string | null,
): void {
  const [first] = words;
  if (action === 'run' && first === undefined && file === null)
    throw usage(
      'run needs the name of a story, all, or -f FILE',
      'ndots lab list shows the stories. ndots lab init > story.yaml writes a sample to start from.',
    );
  if (action === 'run' && first !== undefined && file !== null)
    throw usage('run accepts story names or -f FILE, not both');
  if (file !== null && !['run', 'up'].includes(action)) throw usage(`${action} does not take -f`);
  if (action === 'report' && words.length !== 1)
    throw usage('report needs one file', 'ndots lab run --save FILE writes it.');
  if (action === 'exec' && (words.length !== 1 || program.length === 0))
    throw usage(
      'exec needs a pod, and a program after --',
      'Example: ndots lab exec critical-app/client -- dig +search backend',
    );
  if (action !== 'exec' && program.length > 0)
    throw usage(`${action} does not accept arguments after --`);
  if (['list', 'init', 'up', 'down'].includes(action) && first !== undefined)
    throw usage(`unexpected word "${first}": ${action} accepts only options`);
}
