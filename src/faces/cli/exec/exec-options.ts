/** The command line of `ndots exec`. */
import {
  parseResourceName,
  resourceKinds,
  type ResourceName,
} from '../../../server/kube/pods/resource-name.ts';
import { clusterOptions, type ClusterOptions } from '../cluster-options.ts';
import { group, many, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { duration, namespaceName, text, usage } from '../option-values.ts';

/** What a command line of `ndots exec` says. */
export interface ExecOptions extends ClusterOptions {
  readonly pod: ResourceName;
  /** The verb and its words. */
  readonly words: readonly string[];
  readonly namespace: string | null;
  /** Null: that of this version. */
  readonly image: string | null;
  readonly target: string | null;
  readonly capabilities: readonly string[];
  /** Milliseconds. */
  readonly startMs: number;
}

const table = {
  ...group('Container', {
    image: one('--image', text('IMAGE'), 'image of ndots (ndots-tools: and this version)'),
    target: one('--target', text('CONTAINER'), 'see the processes of this container of the pod'),
    capabilities: many(
      '--capability',
      text('NAME', { words: ['NET_RAW', 'NET_ADMIN'] }),
      'run as root with it: capture needs NET_RAW',
    ),
    start: one('--start-timeout', duration(1000, 3_600_000), 'longest wait for its start (60s)'),
  }),
  ...group('Cluster', {
    namespace: one('-n, --namespace', namespaceName, 'of the pod (that of the context)'),
    ...clusterOptions,
  }),
};

/** The help of `ndots exec`. */
export const execUsage: Usage = {
  synopsis: 'POD [options] -- VERB [WORD…]',
  examples: [
    ['deploy/web -- trace redis.cache', 'as that pod’s own lookups go'],
    ['web-0 -n shop -- check run', 'DNS as seen from there'],
    ['web-0 --capability NET_RAW -- capture -i eth0 -c 20', 'its queries as they pass'],
  ],
  style: 'gnu',
  options: table,
  words: {
    words: resourceKinds.map(({ shortNames, kind }) => `${shortNames[0] ?? kind.toLowerCase()}/`),
  },
  notes: [
    'Runs a verb of ndots in an ephemeral container of the pod: in its network, with its resolv.conf. The pod is not restarted; the container stays listed in it, ended, until the pod goes.',
    'It takes get on pods and pods/log, and patch on pods/ephemeralcontainers.',
    'Exit codes: that of the verb; 2 it could not be run, 3 wrong usage.',
  ],
};

/** Reads the words behind `ndots exec`. @throws Problem */
export function parseExecOptions(words: readonly string[]): ExecOptions {
  const end = words.indexOf('--');
  const { values, words: rest } = parseOptions(table, end < 0 ? words : words.slice(0, end));
  const [pod, ...more] = rest;
  const example = 'As in: ndots exec deploy/web -- trace redis.cache';
  if (pod === undefined) throw usage('in which pod?', example);
  if (more.length > 0)
    throw usage(`unexpected word "${more[0]}"`, `Put the command after --. ${example}`);
  const run = end < 0 ? [] : words.slice(end + 1);
  if (run.length === 0) throw usage('what is to be run there?', example);
  const capabilities = values.capabilities.map((name) => {
    const plain = name.toUpperCase().replace(/^CAP_/, '');
    if (/^[A-Z_]{3,30}$/.test(plain)) return plain;
    throw usage(`--capability takes a name such as NET_RAW, not "${name}"`);
  });
  return {
    ...values,
    capabilities,
    pod: parseResourceName(pod),
    words: run,
    startMs: values.start ?? 60_000,
  };
}
