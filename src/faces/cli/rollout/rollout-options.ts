/** The command line of `ndots rollout`. */
import { nearest } from '../../../server/base/problem.ts';
import type { RolloutTimes } from '../../../tools/lab/rehearsal.ts';
import type { RunOptions } from '../lab/lab-options.ts';
import { flag, group, one, type OptionValue, type Usage } from '../option.ts';
import { colourOptions } from '../colour-options.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, duration, file, integer, usage } from '../option-values.ts';

/** What a command line of `ndots rollout` says. */
export interface RolloutOptions {
  readonly times: RolloutTimes;
  readonly run: RunOptions;
}

const hour = duration(0, 3_600_000);

/** The ports from which Linux draws by default: net.ipv4.ip_local_port_range is 32768 to 60999. */
const LINUX_PORTS = 28_232;

const ports = integer('N', 1, 2000);
const portCount: OptionValue<number | 'random'> = {
  placeholder: 'N|random',
  offers: { words: ['random'] },
  read: (word, name) => (word === 'random' ? word : ports.read(word, name)),
};

const table = {
  ...group('Rollout', {
    pods: one('--pods', integer('N', 1, 4), 'DNS pods that are replaced (2)'),
    lameduck: one('--lameduck', duration(0, 60_000), 'of the plugin health; 0: none (5s)'),
    unavailable: one(
      '--max-unavailable',
      integer('N', 0, 1),
      'pods that end before a new one is ready; kubeadm: 1 (0)',
    ),
    readiness: one(
      '--readiness',
      duration(0, 60_000),
      'periodSeconds of the readiness probe (10s, as Kubernetes has it)',
    ),
    failures: one(
      '--failures',
      integer('N', 1, 100),
      'failureThreshold of the readiness probe (3, as Kubernetes has it)',
    ),
    readyAfter: one(
      '--ready-after',
      duration(0, 60_000),
      'from the start of a new pod until it is ready (1s)',
    ),
    propagation: one(
      '--propagation',
      duration(0, 60_000),
      'from a change of the endpoints until all nodes have new rules (1s)',
    ),
  }),
  ...group('Clients', {
    rate: one('--rate', integer('QPS', 1, 5000), 'queries a second over UDP, of all clients (100)'),
    ports: one(
      '--ports',
      portCount,
      'source ports that take turns; random: a new one for each query, as Linux draws them (500)',
    ),
    conntrack: one('--conntrack-timeout', hour, 'nf_conntrack_udp_timeout of the nodes (30s)'),
    entriesStay: flag(
      '--entries-stay',
      'connections to a pod that has gone stay in the kernel, as where kube-proxy does not run',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json', 'html']), 'text, json or html'),
    save: one('--save', file(), 'keep what was seen, for ndots lab report'),
    model: flag('--model', 'only predict: no rights are needed'),
    mode: one('-m, --mode', choice('MODE', ['iptables', 'nftables']), 'of kube-proxy (iptables)'),
    ...colourOptions,
  }),
};

/** The help of `ndots rollout`. */
export const rolloutUsage: Usage = {
  synopsis: 'rehearse',
  examples: [
    ['rehearse --model --max-unavailable 1 --ports random', 'what kubeadm’s Deployment loses'],
    ['rehearse --readiness 2s --failures 1', 'a probe that fails within lameduck, played'],
    ['rehearse --ports 20 --entries-stay', 'clients that keep their ports'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'A rollout loses the queries that are sent to a pod after it has ended. New connections go there until all nodes have new rules. Ports that are used again go there until kube-proxy removes their connections, which it does when the pod is no longer serving: its readiness probe has failed, or its process has ended.',
    'The loss is calculated from these times, query by query in virtual time, and then played in network namespaces: without lameduck, as given, and with a probe that fails within lameduck. The network of this machine is not touched. Without root the loss is only predicted.',
    'Exit codes: 0 it went as predicted, 1 otherwise, 2 it could not be found out, 3 wrong usage.',
  ],
  words: { words: ['rehearse'] },
};

/** Reads the words behind `ndots rollout`. */
export function parseRolloutOptions(words: readonly string[]): RolloutOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [action, ...others] = rest;
  if (action !== 'rehearse') {
    const meant = nearest(action ?? '', ['rehearse']);
    throw usage(
      action === undefined ? 'what is to be done?' : `"${action}" is not one of its actions`,
      meant === null ? 'Known: rehearse' : `Did you mean ${meant}?`,
    );
  }
  if (others.length > 0) throw usage(`rehearse takes no words, and not "${others[0]}"`);
  const { output, save, model, mode, color, noColor } = values;
  if (model && mode !== null) throw usage('a model has no rules: --model takes no --mode');
  const given = values.ports ?? 500;
  if (given === 'random' && !model)
    throw usage('--ports random is only predicted', 'Add --model, or give --ports a number.');
  const rate = values.rate ?? 100;
  const conntrackMs = values.conntrack ?? 30_000;
  const portTimes = { ports: given === 'random' ? LINUX_PORTS : given, rate, conntrackMs };
  return {
    times: {
      ...portTimes,
      randomPorts: given === 'random',
      warmMs: given === 'random' ? conntrackMs : turnMs(portTimes),
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

/** How long it takes until every port has a connection, if the kernel keeps it that long. */
function turnMs(times: Pick<RolloutTimes, 'ports' | 'rate' | 'conntrackMs'>): number {
  const { ports: count, rate, conntrackMs } = times;
  const onceMs = Math.ceil((count / rate) * 1000);
  return Math.max(1000, onceMs < conntrackMs ? onceMs : 0);
}
