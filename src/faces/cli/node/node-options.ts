/** The command line of `ndots node`. */
import type { ClusterOptions } from '../cluster-options.ts';
import {
  imageOption,
  placeOf,
  podClusterOptions,
  splitWords,
  START_MS,
  startOption,
} from '../container-options.ts';
import { group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { duration, usage } from '../option-values.ts';
import { isObjectName } from '../../../server/kube/store/object-name.ts';

export interface NodeOptions extends ClusterOptions {
  readonly node: string;
  readonly words: readonly string[];
  readonly namespace: string | null;
  /** Null: the image of this version. */
  readonly image: string | null;
  readonly startMs: number;
  readonly limitMs: number;
}

const LIMIT_MS = 3_600_000;

const table = {
  ...group('Container', {
    image: imageOption,
    start: startOption,
    limit: one('--limit', duration(1000, 86_400_000), 'end the pod after this time (60m)'),
  }),
  ...group('Cluster', { ...podClusterOptions }),
};

export const nodeUsage: Usage = {
  synopsis: 'NODE [options] -- VERB [WORD…]',
  examples: [
    ['node1 -- capture -i any --process -c 50', 'show which process sends which query'],
    ['node1 -- capture -i any --process -o flow', 'follow each lookup to the connection after it'],
    [
      'node1 -n kube-system -- top -i any --once --view clients',
      'print the node’s busiest clients',
    ],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Runs a verb in a pod on the node, in the node’s network and PID namespaces, as root with the capabilities from deploy/capture. Pod Security allows such pods only at the privileged level. The pod is deleted at the end, and Ctrl-C ends it.',
    'Required permissions: create, get and delete on pods, get on pods/log.',
    'Exit codes: the verb’s, 2 could not run it, 3 usage error.',
  ],
};

/**
 * Parses the words after `ndots node`.
 * @throws Problem
 */
export function parseNodeOptions(words: readonly string[]): NodeOptions {
  const { before, command } = splitWords(words);
  const { values, words: rest } = parseOptions(table, before);
  const example = 'Example: ndots node node1 -- capture -i any --process -c 50';
  const node = placeOf('node', 'a node', rest, command, example).replace(/^nodes?\//, '');
  if (!isObjectName(node)) throw usage(`"${node}" is not the name of a node`, 'kubectl get nodes');
  return {
    ...values,
    node,
    words: command,
    startMs: values.start ?? START_MS,
    limitMs: values.limit ?? LIMIT_MS,
  };
}
