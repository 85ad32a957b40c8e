/** The command line of `ndots exec`. */
import {
  parseResourceName,
  resourceKinds,
  type ResourceName,
} from '../../../tools/pods/resource-name.ts';
import type { ClusterOptions } from '../cluster-options.ts';
import { group, many, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { text, usage } from '../option-values.ts';
import {
  imageOption,
  placeOf,
  podClusterOptions,
  splitWords,
  START_MS,
  startOption,
} from '../container-options.ts';

export interface ExecOptions extends ClusterOptions {
  readonly pod: ResourceName;
  readonly words: readonly string[];
  readonly namespace: string | null;
  /** Null: the image of this version. */
  readonly image: string | null;
  readonly target: string | null;
  readonly capabilities: readonly string[];
  readonly startMs: number;
}

const table = {
  ...group('Container', {
    image: imageOption,
    target: one('--target', text('CONTAINER'), 'share processes with this container in the pod'),
    capabilities: many(
      '--capability',
      text('NAME', { words: ['NET_RAW', 'NET_ADMIN'] }),
      'run as root with this capability (capture: NET_RAW)',
    ),
    start: startOption,
  }),
  ...group('Cluster', { ...podClusterOptions }),
};

export const execUsage: Usage = {
  synopsis: 'POD [options] -- VERB [WORD…]',
  examples: [
    ['deploy/web -- trace redis.cache', 'trace a lookup as this pod would do it'],
    ['web-0 -n shop -- check run', 'check DNS from this pod'],
    ['web-0 --capability NET_RAW -- capture -i eth0 -c 20', 'show its queries'],
  ],
  style: 'gnu',
  options: table,
  words: {
    words: resourceKinds.map(({ shortNames, kind }) => `${shortNames[0] ?? kind.toLowerCase()}/`),
  },
  notes: [
    "Runs a verb in an ephemeral container of the pod, with the pod's network and resolv.conf. The pod does not restart. Kubernetes lists the ended container until the pod is deleted.",
    'Required permissions: get on pods and pods/log, patch on pods/ephemeralcontainers.',
    'Exit codes: the verb’s, 2 could not run it, 3 usage error.',
  ],
};

/**
 * Parses the words after `ndots exec`.
 * @throws Problem
 */
export function parseExecOptions(words: readonly string[]): ExecOptions {
  const { before, command } = splitWords(words);
  const { values, words: rest } = parseOptions(table, before);
  const example = 'Example: ndots exec deploy/web -- trace redis.cache';
  const pod = placeOf('exec', 'a pod', rest, command, example);
  const capabilities = values.capabilities.map((name) => {
    const plain = name.toUpperCase().replace(/^CAP_/, '');
    if (/^[A-Z_]{3,30}$/.test(plain)) return plain;
    throw usage(`--capability takes a name such as NET_RAW, not "${name}"`);
  });
  return {
    ...values,
    capabilities,
    pod: parseResourceName(pod),
    words: command,
    startMs: values.start ?? START_MS,
  };
}
