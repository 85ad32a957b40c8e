/** The control part of `kubernetes`, which follows the cluster and delays startup until everything has been listed. */
import type { ControlContext } from '../../../engine/contract/control-context.ts';
import type { KubernetesOptions } from '../contract/kubernetes-options.ts';
import { ClusterPublisher } from './publisher.ts';
import { planSource, sourceKey } from './source-plan.ts';
import { loadSource } from './source.ts';
import { waitForListing } from './startup.ts';

/** Opens the source, unless an equal one is already open, and publishes its changes to all workers. */
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
        podNames: plan.podNames,
        clientNames: plan.clientNames,
        outside: plan.outside,
      }),
  );
  context.readiness(() => publisher.synced);
  context.onStart(() => {
    publisher.start();
    return waitForListing(publisher, { clock, log, timeoutMs: options.startupTimeoutMs });
  });
}
