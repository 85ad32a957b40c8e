/** The command line of `ndots rollout`. */
import type { RolloutTimes } from '../../../tools/lab/rehearsal.ts';
import type { RunOptions } from '../lab/lab-options.ts';
import { flag, group, one, type OptionValue, type Usage } from '../option.ts';
import { colourOptions } from '../colour-options.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, duration, file, integer, readAction, usage } from '../option-values.ts';

export interface RolloutOptions {
  readonly times: RolloutTimes;
  readonly run: RunOptions;
}

const actions = ['rehearse'] as const;

const hour = duration(0, 3_600_000);

/** The default number of source ports on Linux, where net.ipv4.ip_local_port_range is 32768 to 60999. */
const LINUX_PORTS = 28_232;

const ports = integer('N', 1, 2000);
const portCount: OptionValue<number | 'random'> = {
  placeholder: 'N|random',
  offers: { words: ['random'] },
  read: (word, name) => (word === 'random' ? word : ports.read(word, name)),
};

const table = {
  ...group('Rollout', {
    pods: one('--pods', integer('N', 1, 4), 'number of DNS pods (2)'),
    lameduck: one('--lameduck', duration(0, 60_000), 'lameduck of the health plugin; 0: none (5s)'),
    unavailable: one(
      '--max-unavailable',
      integer('N', 0, 1),
      'maxUnavailable of the Deployment; kubeadm uses 1 (0)',
    ),
    readiness: one(
      '--readiness',
      duration(0, 60_000),
      'periodSeconds of the readiness probe (10s, as in Kubernetes)',
    ),
    failures: one(
      '--failures',
      integer('N', 1, 100),
      'failureThreshold of the readiness probe (3, as in Kubernetes)',
    ),
    readyAfter: one('--ready-after', duration(0, 60_000), 'time until a new pod is ready (1s)'),
    propagation: one(
      '--propagation',
      duration(0, 60_000),
      'time until all nodes apply changed endpoints (1s)',
    ),
  }),
  ...group('Clients', {
    rate: one('--rate', integer('QPS', 1, 5000), 'UDP queries per second from all clients (100)'),
    ports: one(
      '--ports',
      portCount,
      'number of source ports in rotation; random: a new one per query (500)',
    ),
    conntrack: one('--conntrack-timeout', hour, 'nf_conntrack_udp_timeout on the nodes (30s)'),
    entriesStay: flag(
      '--entries-stay',
      'keep conntrack entries of deleted pods, as without kube-proxy',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json', 'html']), 'text, json or html'),
    save: one('--save', file(), 'save the result for ndots lab report'),
    model: flag('--model', 'predict only, without root'),
    mode: one(
      '-m, --mode',
      choice('MODE', ['iptables', 'nftables']),
      'kube-proxy mode: iptables or nftables (iptables)',
    ),
    ...colourOptions,
  }),
};

export const rolloutUsage: Usage = {
  synopsis: 'rehearse',
  examples: [
    [
      'rehearse --model --max-unavailable 1 --ports random',
      "predict the losses of kubeadm's Deployment",
    ],
    ['rehearse --readiness 2s --failures 1', 'rehearse with a probe that fails during lameduck'],
    ['rehearse --ports 20 --entries-stay', 'rehearse with clients that reuse their ports'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'A rollout loses queries that reach a pod after it has ended. New connections go to the pod until all nodes have new rules. Queries from reused source ports go to it until kube-proxy removes their conntrack entries, which happens once the readiness probe has failed or the process has ended.',
    'The command first simulates each query in virtual time. It then rehearses the rollout in network namespaces: without lameduck, as given, and with a probe that fails during lameduck. It does not touch this machine’s network. Without root, it only predicts.',
    'Exit codes: 0 as predicted, 1 not as predicted, 2 could not run, 3 usage error.',
  ],
  words: { words: actions },
};

/** Parses the words after `ndots rollout`. */
export function parseRolloutOptions(words: readonly string[]): RolloutOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [given = '', ...others] = rest;
  readAction(given, actions);
  if (others.length > 0)
    throw usage(`unexpected word "${others[0]}": rehearse accepts only options`);
  const { output, save, model, mode, color, noColor } = values;
  if (model && mode !== null)
    throw usage('--model does not use kube-proxy rules, so --mode does not apply');
  const used = values.ports ?? 500;
  if (used === 'random' && !model)
    throw usage('--ports random can only be predicted', 'Add --model, or set --ports to a number.');
  const rate = values.rate ?? 100;
  const conntrackMs = values.conntrack ?? 30_000;
  const portTimes = { ports: used === 'random' ? LINUX_PORTS : used, rate, conntrackMs };
  return {
    times: {
      ...portTimes,
      randomPorts: used === 'random',
      warmMs: used === 'random' ? conntrackMs : turnMs(portTimes),
      pods: values.pods ?? 2,
      unavailable: values.unavailable === 1 ? 1 : 0,
      readyMs: values.readyAfter ?? 1000,
      unreadyMs: (values.readiness ?? 10_000) * (values.failures ?? 3),
      propagationMs: values.propagation ?? 1000,
      lameduckMs: values.lameduck ?? 5000,
      entriesStay: values.entriesStay,
    },
    run: {
      output: output ?? 'text',
      mode: mode ?? 'iptables',
      coredns: null,
      pcap: null,
      keep: false,
      model,
      save,
      color,
      noColor,
    },
  };
}

/** Time until every port has a conntrack entry, but at most the conntrack timeout. */
function turnMs(times: Pick<RolloutTimes, 'ports' | 'rate' | 'conntrackMs'>): number {
  const { ports: count, rate, conntrackMs } = times;
  const onceMs = Math.ceil((count / rate) * 1000);
  return Math.max(1000, onceMs < conntrackMs ? onceMs : 0);
}
