/** Options for commands that run another command in one of the cluster's containers. */
import { nearest } from '../../server/base/problem.ts';
import { secureRandom } from '../../server/base/random.ts';
import type { EphemeralContainer } from '../../tools/pods/ephemeral-container.ts';
import { clusterOptions, type ClusterTable } from './cluster-options.ts';
import type { Io } from './command.ts';
import { one, type One } from './option.ts';
import { duration, namespaceName, text, usage } from './option-values.ts';
import { isVerb, verbNames } from './verb-names.ts';
import { coreVersion } from './version/version.ts';

export const imageOption: One<string> = one(
  '--image',
  text('IMAGE'),
  'image to run (ndots-tools, of this version)',
);

export const startOption: One<number> = one(
  '--start-timeout',
  duration(1000, 3_600_000),
  'limit for the start (60s)',
);
export const START_MS = 60_000;

export const podClusterOptions: ClusterTable & { readonly namespace: One<string> } = {
  namespace: one('-n, --namespace', namespaceName, 'namespace of the pod (default: the context’s)'),
  ...clusterOptions,
};

export function containerOf(
  { image, words }: { readonly image: string | null; readonly words: readonly string[] },
  io: Pick<Io, 'colour'>,
): Pick<EphemeralContainer, 'name' | 'image' | 'args' | 'env'> {
  return {
    name: `ndots-${(secureRandom.integer(2 ** 30) + 2 ** 30).toString(36)}`,
    image: image ?? `ndots-tools:${coreVersion}`,
    args: words,
    env: io.colour ? { FORCE_COLOR: '1' } : { NO_COLOR: '1' },
  };
}

/** The words before and after `--`. */
export interface SplitWords {
  readonly before: readonly string[];
  readonly command: readonly string[];
}

export function splitWords(words: readonly string[]): SplitWords {
  const end = words.indexOf('--');
  return end < 0
    ? { before: words, command: [] }
    : { before: words.slice(0, end), command: words.slice(end + 1) };
}

/**
 * Checks the words of such a command.
 * @param rest words before `--` that are not options
 * @param what the only word refers to: `a pod`
 * @returns that word
 * @throws Problem
 */
export function placeOf(
  verb: string,
  what: string,
  rest: readonly string[],
  command: readonly string[],
  example: string,
): string {
  const [place, ...more] = rest;
  if (place === undefined) throw usage(`${verb} needs ${what}`, example);
  if (more.length > 0)
    throw usage(`unexpected word "${more[0]}"`, `Put the command after --. ${example}`);
  const [first] = command;
  if (first === undefined) throw usage(`${verb} needs a command after --`, example);
  if (isVerb(first)) return place;
  const meant = nearest(first, verbNames);
  throw usage(
    `there is no verb '${first}'`,
    meant === null
      ? 'After --, give an ndots verb, as in trace redis.cache. For other programs, use kubectl exec.'
      : `Did you mean '${meant}'?`,
  );
}
