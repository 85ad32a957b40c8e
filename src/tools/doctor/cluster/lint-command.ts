/** How a person runs the linter on the configuration of a cluster. */
import type { ClusterFacts } from './facts.ts';

/** The command that shows what the linter says of the configuration. */
export function lintCommand({ namespace }: Pick<ClusterFacts, 'namespace'>): string {
  return `ndots lint --cluster${namespace === 'kube-system' ? '' : ` -n ${namespace}`}`;
}
