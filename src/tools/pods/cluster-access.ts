import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { systemClock, type Clock } from '../../server/base/clock.ts';
import { Problem } from '../../server/base/problem.ts';
import { FILE_MAX, readFileText } from '../../server/base/read-file.ts';
import {
  contextConnection,
  inClusterConnection,
  serviceAccountDirectory,
  type ApiConnection,
} from '../../server/kube/api/connection.ts';
import { readKubeconfig } from '../../server/kube/api/kubeconfig.ts';

/** The cluster selected on a command line by means of kubectl's options. */
export interface ClusterChoice {
  /**
   * `--kubeconfig`. If null, KUBECONFIG applies, then `~/.kube/config`, and then the cluster that this process runs in.
   */
  readonly kubeconfig: string | null;
  /** `--context`; null = the current one. */
  readonly context: string | null;
  /** `--as`: the user to impersonate. If null, the kubeconfig decides. */
  readonly as?: string | null;
  readonly asGroups?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The selected cluster and how to reach it. */
export interface ClusterAccess {
  readonly connection: ApiConnection;
  /** The default namespace for objects. */
  readonly namespace: string;
  /** A human-readable description: `context prod`, or `the cluster of this pod`. */
  readonly name: string;
}

/** Returns the cluster that kubectl would use, or throws a `Problem`. */
export function clusterAccess(choice: ClusterChoice, clock: Clock = systemClock): ClusterAccess {
  const files = kubeconfigFiles(choice);
  if (files.length > 0) {
    const context = readKubeconfig(files, choice.context ?? undefined);
    const { as = null, asGroups = [] } = choice;
    const actingAs = as === null ? context.actingAs : { user: as, uid: '', groups: asGroups };
    return {
      connection: contextConnection({ ...context, actingAs }, clock),
      namespace: context.namespace || 'default',
      name: `context ${context.name}`,
    };
  }
  if (choice.context !== null || (choice.env['KUBERNETES_SERVICE_HOST'] ?? '') === '') {
    throw new Problem({
      code: 'no-cluster',
      text: 'no cluster is configured: there is no kubeconfig, and this process does not run in a pod',
      remedy: 'Specify one with --kubeconfig FILE or the variable KUBECONFIG.',
    });
  }
  return {
    connection: inClusterConnection({ environment: choice.env }),
    namespace: ownNamespace(),
    name: 'the cluster of this pod',
  };
}

/** Files named explicitly must exist. A missing file in KUBECONFIG, or a missing default file, is skipped. */
function kubeconfigFiles({ kubeconfig, env }: ClusterChoice): readonly string[] {
  if (kubeconfig !== null) return [kubeconfig];
  const listed = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '');
  const usual = join(env['HOME'] ?? '', '.kube', 'config');
  return (listed.length > 0 ? listed : [usual]).filter((file) => existsSync(file));
}

function ownNamespace(): string {
  try {
    return readFileText(join(serviceAccountDirectory, 'namespace'), FILE_MAX.small).trim();
  } catch {
    return 'default';
  }
}
