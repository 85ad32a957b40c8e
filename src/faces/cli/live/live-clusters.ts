/** Models for live views, either one for all sources or one per `--replicas` context. */
import { systemClock } from '../../../server/base/clock.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import type { LiveLimits } from '../../../tools/watch/live-limits.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { addressOwners, type NameChoice } from '../capture/capture-names.ts';
import type { Io } from '../command.ts';
import { clusterGiven, namesCluster, type ownerOptions } from '../cluster-options.ts';
import type { OptionValues } from '../option.ts';
import { usage } from '../option-values.ts';
import { followNames } from './follow-names.ts';
import { startFeed, type FeedOptions, type PacketFeed } from './live-feed.ts';
import {
  limitsOf,
  liveSourcesOf,
  type contextsOption,
  type speedOption,
  type windowOptions,
} from './live-options.ts';
import { turnsOfThread, type StreamTurns } from './stream-turns.ts';

export type ClustersOptions = FeedOptions &
  NameChoice & {
    /** Contexts in the kubeconfig. If empty, uses the current one or no cluster. */
    readonly contexts: readonly string[];
    readonly limits: Partial<LiveLimits>;
  };

/** A model and its sources. Clusters do not share a model because they may use the same addresses. */
export interface LiveCluster<Options extends ClustersOptions = ClustersOptions> {
  /** The context. Empty if there is at most one cluster. */
  readonly name: string;
  readonly options: Options;
  readonly model: LiveModel;
  readonly feed: PacketFeed;
  stop(): void;
}

/** The values of the options that select sources, names and limits. */
type GivenOptions = Omit<Parameters<typeof liveSourcesOf>[0], 'context'> &
  OptionValues<
    typeof contextsOption &
      typeof speedOption &
      typeof windowOptions &
      Pick<typeof ownerOptions, 'manifests' | 'cluster'>
  >;

/**
 * Selects what a live view reads, and how it names addresses.
 * @throws Problem (`usage`)
 */
export function clustersOptionsOf(given: GivenOptions, files: readonly string[]): ClustersOptions {
  const { context: contexts, manifests } = given;
  if (contexts.length > 1 && !given.replicas)
    throw usage(
      'several --context options need --replicas',
      'Each cluster is read through its DNS pods.',
    );
  const values = { ...given, context: contexts[0] ?? null };
  return {
    ...liveSourcesOf(values, files),
    ...{ contexts, manifests },
    cluster: values.cluster || values.replicas || namesCluster(values),
    ...clusterGiven(values),
    speed: values.speed ?? 1,
    limits: limitsOf(values),
  };
}

/**
 * Starts all clusters. Reports those that cannot be read and shows the rest.
 * @throws Problem if none can be read
 */
export async function startClusters<Options extends ClustersOptions>(
  options: Options,
  io: Io,
  note: (text: string) => void,
): Promise<readonly LiveCluster<Options>[]> {
  const { contexts } = options;
  const turns = turnsOfThread(systemClock);
  if (contexts.length < 2) return [await startCluster('', options, io, note, turns)];
  const started: LiveCluster<Options>[] = [];
  let first: unknown = null;
  for (const context of new Set(contexts)) {
    const replicas = options.replicas!;
    const access = { ...replicas.access, context };
    const own = { ...options, context, replicas: { ...replicas, access } };
    try {
      started.push(await startCluster(context, own, io, note, turns));
    } catch (error) {
      const [problem] = problemsIn(error) ?? [];
      if (problem === undefined) throw error;
      first ??= error;
      note(`${context} is left out: ${problem.message}`);
    }
  }
  if (started.length === 0) throw first;
  return started;
}

async function startCluster<Options extends ClustersOptions>(
  name: string,
  options: Options,
  io: Io,
  note: (text: string) => void,
  turns: StreamTurns,
): Promise<LiveCluster<Options>> {
  const { limits } = options;
  const model = new LiveModel({ limits, owners: await addressOwners(options, io, note) });
  const feed = await startFeed(options, model, systemClock, io, turns);
  const forget = followNames(options, io, model);
  const stop = (): void => {
    feed.stop();
    forget();
  };
  return { name, options, model, feed, stop };
}
