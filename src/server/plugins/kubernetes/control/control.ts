/** The control part of `kubernetes`, which follows the cluster and delays startup until everything has been listed. */
import type { ControlContext } from '../../../engine/contract/control-context.ts';
import { waitBeforeServing } from '../../../engine/contract/startup.ts';
import type { Source } from '../../../kube/store/object-source.ts';
import type { KubernetesOptions } from '../contract/kubernetes-options.ts';
import type { SourceParts } from './api-source.ts';
import { clusterRecords, type ClusterRecord } from './cluster-records.ts';
import { ClusterPublisher } from './publisher.ts';
import { planSource, sourceKey, type SourcePlan } from './source-plan.ts';

const LATE = 'starting server with unsynced Kubernetes API';

/**
 * Opens the source, unless an equal one is already open, and publishes its changes to all workers. Waits until
 * everything has been listed once, and logs the wait as CoreDNS does. The wait ends early if the API server does not
 * answer, because external names do not depend on it.
 */
export async function control(options: KubernetesOptions, context: ControlContext): Promise<void> {
  const plan = planSource(options, context);
  const { clock, log, metrics } = context;
  const openSource = await loadSource(plan);
  const publisher = context.replicated(
    sourceKey(plan),
    (open) =>
      new ClusterPublisher({
        source: openSource(context),
        open,
        clock,
        metrics,
        clientNames: plan.clientNames,
      }),
  );
  context.readiness(() => publisher.synced);
  context.onStart(() => {
    publisher.start();
    return waitBeforeServing({
      clock,
      log,
      timeoutMs: options.startupTimeoutMs,
      whenReady: (run) =>
        publisher.whenSettled(() => {
          if (!publisher.synced) log.warning(LATE);
          run();
        }),
      everyMs: 500,
      waiting: 'waiting for Kubernetes API before starting server',
      late: LATE,
    });
  });
}

/**
 * Loads only the code that the plan's source needs.
 * @returns a function that opens the source; it throws a Problem (directory, files, environment)
 */
async function loadSource(
  plan: SourcePlan,
): Promise<(parts: SourceParts) => Source<ClusterRecord>> {
  const { manifests: directory, manifestMemory: memory, wanted } = plan;
  if (directory === null) {
    const { apiSource } = await import('./api-source.ts');
    return (parts) => apiSource(plan, parts);
  }
  const { manifestSource } = await import('../../../kube/manifests/manifest-directory.ts');
  return ({ clock, log, metrics }) => {
    const problems = metrics.counter(
      'ndots_kubernetes_manifest_problems_total',
      "Errors in the manifest directory's files, and files that exceed its limits.",
      ['code'],
    );
    const bytes = metrics.gauge(
      'ndots_kubernetes_manifest_bytes',
      'Computed memory use of the objects in the manifest directory.',
    );
    return manifestSource({
      directory,
      memory,
      wanted,
      reduction: clusterRecords(plan),
      clock,
      log,
      problem: ({ code }) => problems.with(code).add(1),
      applied: (count) => bytes.set(count),
    });
  };
}
