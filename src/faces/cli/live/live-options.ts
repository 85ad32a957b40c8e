/** Options shared by the live views, for servers, speed, window and memory. */
import { readSecret, readSecretOrLog } from '../../../server/base/secret-file.ts';
import { liveLimits, type LiveLimits } from '../../../tools/watch/live-limits.ts';
import type { Io } from '../command.ts';
import { sourcesOf, type TrafficSources } from '../capture/traffic-options.ts';
import { clusterGiven, type ClusterOptions } from '../cluster-options.ts';
import {
  beside,
  flag,
  many,
  one,
  type Many,
  type One,
  type OptionValue,
  type OptionValues,
  type Switch,
} from '../option.ts';
import {
  duration,
  file,
  integer,
  labelSelector,
  listenAddress,
  namespaceName,
  nodeName,
  text,
  usage,
} from '../option-values.ts';
import { REPLICAS, type ReplicaChoice } from './replica-choice.ts';
import type { FollowedServer } from './server-stream.ts';

const MIB = 1024 * 1024;
const CONSOLE_PORT = 9155;
const TOKEN_VARIABLE = 'NDOTS_SERVER_TOKEN';

/** A speed relative to recorded time: `10`, `0.5`, `10x` or `max`. */
const speedValue: OptionValue<number> = {
  placeholder: 'N|max',
  offers: { words: ['1', '10', '100', 'max'] },
  read(given, name) {
    if (given === 'max') return Infinity;
    const speed = /^\d{1,6}(?:\.\d{1,3})?x?$/.test(given) ? Number.parseFloat(given) : 0;
    if (speed >= 0.01 && speed <= 100_000) return speed;
    throw usage(`${name} takes a number from 0.01 to 100000, or max, not "${given}"`);
  },
};

export const serverOptions: {
  readonly servers: Many<FollowedServer>;
  readonly serverToken: One<string>;
  readonly replicas: Switch;
  readonly replicaNamespace: One<string>;
  readonly replicaSelector: One<string>;
  readonly replicaPort: One<number>;
  readonly replicaNodes: Many<string>;
  readonly replicaNodeSelector: One<string>;
  readonly replicaMax: One<number>;
} = {
  servers: many(
    '--server',
    { ...listenAddress(CONSOLE_PORT), placeholder: 'IP[:PORT]' },
    'an ndots server with the console directive; repeatable',
  ),
  serverToken: one(
    '--server-token',
    file(),
    `read the servers’ token from FILE (or from the variable ${TOKEN_VARIABLE})`,
  ),
  replicas: flag(
    '--replicas',
    'all of the cluster’s DNS pods, via their console directive, through the API server',
  ),
  ...beside(['--replicas'], {
    replicaNamespace: one(
      '--replica-namespace',
      namespaceName,
      'namespace of the pods (kube-system)',
    ),
    replicaSelector: one(
      '--replica-selector',
      labelSelector,
      'label selector for the pods (default: the DNS service’s)',
    ),
    replicaPort: one(
      '--replica-port',
      integer('PORT', 1, 65_535),
      `port of the console directive in the pods (${CONSOLE_PORT})`,
    ),
    replicaNodes: many('--replica-node', nodeName, 'only pods on this node; repeatable'),
    replicaNodeSelector: one(
      '--replica-node-selector',
      labelSelector,
      'only pods on nodes with these labels',
    ),
    replicaMax: one(
      '--replica-max',
      integer('N', 1, REPLICAS.max),
      `follow at most this many pods (${REPLICAS.default})`,
    ),
  }),
};

/** A --context option that may be repeated, instead of the single one in other commands. */
export const contextsOption: { readonly context: Many<string> } = {
  context: many(
    '--context',
    text('NAME'),
    'context in the kubeconfig; repeat with --replicas to show clusters side by side',
  ),
};

export const speedOption: { readonly speed: One<number> } = {
  speed: one('--speed', speedValue, 'replay files N times as fast (1)'),
};

export const windowOptions: { readonly window: One<number>; readonly memory: One<number> } = {
  window: one(
    '--window',
    duration(liveLimits.windowMs.min, liveLimits.windowMs.max),
    'keep individual lookups for this long (10m)',
  ),
  memory: one(
    '--memory',
    integer('MIB', 1, 4096),
    `memory limit for individual lookups (${liveLimits.detailBytes.default / MIB})`,
  ),
};

export interface LiveSources extends TrafficSources {
  readonly servers: readonly FollowedServer[];
  readonly serverToken: string | null;
  /** A cluster's DNS pods, or null if not used. */
  readonly replicas: ReplicaChoice | null;
}

type SourceValues = Parameters<typeof sourcesOf>[0] &
  OptionValues<typeof serverOptions> &
  ClusterOptions;

/**
 * The selected sources, which default to all of this machine's interfaces.
 * @throws Problem (`usage`)
 */
export function liveSourcesOf(values: SourceValues, files: readonly string[]): LiveSources {
  const { servers, serverToken, device, netns, pid, dnstap } = values;
  const isCapture = [device, netns, pid, dnstap].some((each) => each !== null);
  const isServers = servers.length > 0 || values.replicas;
  if (isServers && files.length > 0)
    throw usage(
      'files and servers cannot be combined',
      'Files are read without --server and --replicas',
    );
  if (!isServers && serverToken !== null)
    throw usage('--server-token needs --server or --replicas', 'Example: --server 127.0.0.1:9155');
  const followed = { servers, serverToken, replicas: replicasOf(values) };
  if (isServers && !isCapture)
    return { files: [], device: null, netns: null, dnstap: null, ports: values.ports, ...followed };
  const isBare = !isCapture && files.length === 0;
  return { ...sourcesOf(isBare ? { ...values, device: 'any' } : values, files), ...followed };
}

function replicasOf(values: SourceValues): ReplicaChoice | null {
  if (!values.replicas) return null;
  return {
    namespace: values.replicaNamespace ?? 'kube-system',
    selector: values.replicaSelector,
    port: values.replicaPort ?? CONSOLE_PORT,
    nodes: values.replicaNodes,
    nodeSelector: values.replicaNodeSelector,
    podsMax: values.replicaMax ?? REPLICAS.default,
    access: clusterGiven(values),
  };
}

export function limitsOf({
  window,
  memory,
}: OptionValues<typeof windowOptions>): Partial<LiveLimits> {
  return {
    ...(window !== null && { windowMs: window }),
    ...(memory !== null && { detailBytes: memory * MIB }),
  };
}

/**
 * The token for remote servers. The file is read again for each connection, because tokens may expire.
 * @throws Problem
 */
export function serverTokenOf(
  { servers, serverToken, replicas }: LiveSources,
  env: Io['env'],
): () => string {
  if (servers.length === 0 && replicas === null) return () => '';
  if (serverToken !== null) {
    let last = readSecret(serverToken, 'Copy the token from the server’s token file or its log.');
    // If the file is being replaced, the next attempt will be able to read it.
    return () => (last = readSecretOrLog(serverToken, { error: () => undefined }) ?? last);
  }
  const given = env[TOKEN_VARIABLE] ?? '';
  if (given !== '') return () => given;
  throw usage(
    'the servers require a token',
    `--server-token FILE, or ${TOKEN_VARIABLE}: the token is in the server’s token_file or its log`,
  );
}
