/** Cluster options for all commands, named as in kubectl, and the client for the selected cluster. */
import { systemClock } from '../../server/base/clock.ts';
import {
  apiClient,
  userAgent,
  type ApiClient,
  type ClientParts,
} from '../../server/kube/api/client.ts';
import { clusterAccess, type ClusterAccess } from '../../tools/pods/cluster-access.ts';
import type { Io } from './command.ts';
import { flag, many, one, type Many, type One, type Switch } from './option.ts';
import { file, text } from './option-values.ts';
import { coreVersion } from './version/version.ts';

export interface ClusterOptions {
  readonly kubeconfig: string | null;
  readonly context: string | null;
  /** A user to impersonate at the API server. */
  readonly as: string | null;
  readonly asGroup: readonly string[];
}

export interface ClusterTable {
  readonly kubeconfig: One<string>;
  readonly context: One<string>;
  readonly as: One<string>;
  readonly asGroup: Many<string>;
}

/** Options of every command that accesses a cluster. */
export const clusterOptions: ClusterTable = {
  kubeconfig: one(
    '--kubeconfig',
    file(),
    'kubeconfig file (default: KUBECONFIG, else ~/.kube/config)',
  ),
  context: one('--context', text('NAME'), 'context in the kubeconfig'),
  as: one('--as', text('USER'), 'user to impersonate'),
  asGroup: many('--as-group', text('GROUP'), 'group to impersonate; repeatable'),
};

export const clusterKeys = ['kubeconfig', 'context', 'as', 'asGroup'] as const;

export const clusterNames: readonly string[] = [
  '--cluster',
  ...Object.values(clusterOptions).flatMap(({ names }) => names),
];

/** Options for commands that map addresses to names. */
export const ownerOptions: ClusterTable & {
  readonly manifests: One<string>;
  readonly cluster: Switch;
} = {
  manifests: one(
    '--manifests',
    file('DIR'),
    'read pod names from the output of kubectl get pods,services,nodes -A -o yaml',
  ),
  cluster: flag('--cluster', 'read pod names from the current kubectl cluster'),
  ...clusterOptions,
};

export function clusterGiven({ kubeconfig, context, as, asGroup }: ClusterOptions): ClusterOptions {
  return { kubeconfig, context, as, asGroup };
}

/** True if an option identifies a cluster, in which case `--cluster` is not needed. */
export function namesCluster({ kubeconfig, context, as, asGroup }: ClusterOptions): boolean {
  return (kubeconfig ?? context ?? as) !== null || asGroup.length > 0;
}

/**
 * The selected cluster.
 * @throws Problem
 */
export function accessOf(options: ClusterOptions, { env }: Pick<Io, 'env'>): ClusterAccess {
  const { kubeconfig, context, as, asGroup } = options;
  return clusterAccess({ kubeconfig, context, as, asGroups: asGroup, env });
}

/**
 * A client for the cluster, which the caller must close.
 * @param limits on its requests, for long-running programs
 */
export function clusterClient(
  { connection }: ClusterAccess,
  limits?: ClientParts['limits'],
): ApiClient {
  return apiClient({
    connection,
    clock: systemClock,
    userAgent: userAgent(coreVersion),
    ...(limits !== undefined && { limits }),
  });
}

/**
 * Runs a function with a client, then closes its connections.
 * @throws Problem if there is no cluster
 */
export async function withCluster<T>(
  access: ClusterAccess,
  use: (client: ApiClient) => Promise<T>,
): Promise<T> {
  const client = clusterClient(access);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}
