/** The command that lints the configuration of a cluster. */
import type { ClusterFacts } from './facts.ts';

export function lintCommand({ namespace }: Pick<ClusterFacts, 'namespace'>): string {
  return `ndots lint --cluster${namespace === 'kube-system' ? '' : ` -n ${namespace}`}`;
}
