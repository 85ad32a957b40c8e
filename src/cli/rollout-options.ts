/** The command line of `ndots rollout`. */
import { nearest } from '../base/problem.ts';
import type { RolloutTimes } from '../lab/rehearsal.ts';
import type { RunOptions } from './lab-options.ts';
import { flag, group, one, type Usage } from './option.ts';
import { colourOptions } from './colour-options.ts';
import { parseOptions } from './option-parse.ts';
import { choice, duration, file, integer, usage } from './option-values.ts';

/** What a command line of `ndots rollout` says. */
export interface RolloutOptions {
  readonly times: RolloutTimes;
  readonly run: RunOptions;
}

const hour = duration(0, 3_600_000);

const table = {
  ...group('Rollout', {
    pods: one('--pods', integer('N', 1, 4), 'DNS pods that are replaced (2)'),
    lameduck: one('--lameduck', duration(0, 60_000), 'of the plugin health; 0: none (5s)'),
    readiness: one(
      '--readiness',
      duration(0, 60_000),
      'periodSeconds of the readiness probe: a new pod counts as ready so late (1s)',
    ),
    propagation: one(
      '--propagation',
      duration(0, 60_000),
      'from a change of the endpoints until all nodes have new rules (1s)',
    ),
  }),
  ...group('Clients', {
    rate: one('--rate', integer('QPS', 1, 5000), 'queries a second, of all clients (100)'),
    ports: one(
      '--ports',
      integer('N', 1, 2000),
      'source ports that take turns; few: clients that keep theirs (2000)',
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
    ['rehearse --model', 'what two pods are going to lose'],
    ['rehearse --lameduck 5s --propagation 2s', 'predicted, and played'],
    ['rehearse --ports 20 --entries-stay', 'clients that keep their ports'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'A rollout loses what is sent to a pod that has ended before the nodes know: the loss is calculated from these times, query by query in virtual time, and then played in network namespaces, without lameduck and with it. The network of this machine is not touched. Without root it is only predicted.',
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
  return {
    times: {
      pods: values.pods ?? 2,
      rate: values.rate ?? 100,
      ports: values.ports ?? 2000,
      readyMs: values.readiness ?? 1000,
      propagationMs: values.propagation ?? 1000,
      lameduckMs: values.lameduck ?? 5000,
      conntrackMs: values.conntrack ?? 30_000,
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
