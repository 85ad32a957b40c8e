/** A directive's source, which is either a directory with manifests or an API server and its connection. */
import type { Source } from '../../../kube/store/source.ts';
import type { SourceParts } from './api-source.ts';
import type { SourcePlan } from './source-plan.ts';

/**
 * Loads only the code that the plan's source needs.
 * @returns a function that opens the source; it throws a Problem (directory, files, environment)
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
      "Errors in the manifest directory's files, and files that exceed its limits.",
      ['code'],
    );
    const bytes = metrics.gauge(
      'ndots_kubernetes_manifest_bytes',
      'Computed memory use of the objects in the manifest directory.',
    );
    return manifestSource({
      folder,
      memory,
      wanted,
      clock,
      log,
      problem: ({ code }) => problems.with(code).add(1),
      applied: (count) => bytes.set(count),
    });
  };
}
