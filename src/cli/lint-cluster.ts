/** `--cluster`: the objects that have their say in DNS, from the cluster that kubectl would talk to. */
import { systemClock } from '../base/clock.ts';
import { apiClient, userAgent } from '../kube/api/client.ts';
import { clusterAccess } from '../kube/api/cluster-access.ts';
import { ApiFailure } from '../kube/api/failure.ts';
import { getJson } from '../kube/api/get-json.ts';
import { asObject, children } from '../kube/api/json-object.ts';
import { Problem } from '../base/problem.ts';
import type { GivenFile } from '../lint/gather.ts';
import type { Io } from './command.ts';
import type { LintOptions } from './lint-options.ts';
import { coreVersion } from './version.ts';

/** A cluster that takes longer is not there, milliseconds. */
const WAIT_MS = 8000;

/** What is asked for; the first one must be readable. */
const lists: readonly (readonly [kind: string, path: string])[] = [
  ['ConfigMap', '/api/v1/namespaces/kube-system/configmaps'],
  ['Service', '/api/v1/namespaces/kube-system/services'],
  ['Deployment', '/apis/apps/v1/namespaces/kube-system/deployments'],
  ['DaemonSet', '/apis/apps/v1/namespaces/kube-system/daemonsets'],
  ['PodDisruptionBudget', '/apis/policy/v1/namespaces/kube-system/poddisruptionbudgets'],
  ['NetworkPolicy', '/apis/networking.k8s.io/v1/networkpolicies'],
  [
    'MutatingWebhookConfiguration',
    '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations',
  ],
  [
    'ValidatingWebhookConfiguration',
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
  ],
];

/** One file for each kind. What may not be listed is told of and left out. */
export async function clusterFiles(options: LintOptions, io: Io): Promise<readonly GivenFile[]> {
  const { kubeconfig, context, as, asGroup } = options;
  const access = clusterAccess({ kubeconfig, context, as, asGroups: asGroup, env: io.env });
  const client = apiClient({
    connection: access.connection,
    clock: systemClock,
    userAgent: userAgent(coreVersion),
  });
  try {
    const files = await Promise.all(
      lists.map(async ([kind, path]) => {
        try {
          const task = `list ${path.split('/').at(-1)!}`;
          const query = { limit: '2000' };
          const found = await getJson(client, {
            path,
            query,
            task,
            waitMs: WAIT_MS,
            signal: io.signal,
          });
          // Items of a list have no kind of their own.
          const items = children(asObject(found), 'items').map((item) => ({ ...item, kind }));
          const text = JSON.stringify({ kind: 'List', items }, null, 1);
          return { file: `${access.name}: ${kind}`, text, named: true };
        } catch (error) {
          if (!(error instanceof ApiFailure)) throw error;
          if (error.kind === 'forbidden' || error.kind === 'missing') {
            io.err(`ndots lint: ${error.message}: left out\n`);
            return null;
          }
          throw new Problem({
            code: 'cluster-not-asked',
            text: error.message,
            hint: error.advice || undefined,
            remedy: 'Without a cluster: ndots lint FILE',
            cause: error,
          });
        }
      }),
    );
    return files.filter((file) => file !== null);
  } finally {
    client.close();
  }
}
