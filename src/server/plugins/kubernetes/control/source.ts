/** Which source a directive names: a folder of manifests, or an API server and the way to it. */
import type { Source } from '../../../kube/store/source.ts';
import type { SourceParts } from './api-source.ts';
import type { SourcePlan } from './source-plan.ts';

/**
 * Loads what it takes to open the source that the plan names: of manifests and API server only the
 * one.
 * @returns opens it, and throws a Problem (folder, files, environment)
 */
export async function loadSource(plan: SourcePlan): Promise<(parts: SourceParts) => Source> {
  const { manifests: folder, manifestMemory: memory, wanted } = plan;
  if (folder === null) {
    const { apiSource } = await import('./api-source.ts');
    return (parts) => apiSource(plan, parts);
  }
  const { manifestSource } = await import('../../../kube/manifests/manifest-folder.ts');
  return ({ clock, log, metrics }) => {
    const problems = metrics.counter(
      'ndots_kubernetes_manifest_problems_total',
      'Mistakes in files of the manifest folder, and files that were more than its limits.',
      ['code'],
    );
    const bytes = metrics.gauge(
      'ndots_kubernetes_manifest_bytes',
      'Memory that the objects of the manifest folder take, reckoned.',
      [],
    );
    return manifestSource({
      folder,
      memory,
      wanted,
      clock,
      log,
      problem: ({ code }) => problems.with(code).add(1),
      applied: (count) => bytes.with().set(count),
    });
  };
}
