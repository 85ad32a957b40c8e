/** Models kube-proxy's rule chain for a service that has three endpoints, in virtual time. */
import { seededRandom } from '../../../server/base/random.ts';
import { clusterState } from '../proxy-rules/cluster-state.ts';
import { manifestText } from '../objects.ts';
import { act, equal, within, type Act, type Fact } from '../story.ts';

const pods = [4, 5, 6].map((last) => `172.17.0.${last}`);

/**
 * Checks that each share is close to a third of all draws. The bound is five standard deviations, which is exceeded in
 * one run out of a million.
 */
function shares(counts: readonly number[]): readonly Fact[] {
  const all = counts.reduce((sum, count) => sum + count, 0);
  const spread = 5 * Math.sqrt((2 / 9) * all);
  return counts.map((count, index) =>
    within(`requests answered by ${pods[index]}`, [all / 3 - spread, all / 3 + spread], count),
  );
}

export function serviceSharesModel(objects: string): readonly Act[] {
  const state = clusterState(manifestText(objects), 'IPv4');
  const endpoints =
    [...state.endpoints].find(([key]) => key.startsWith('critical-app/backend'))?.[1] ?? [];
  const random = seededRandom(53);
  const counts = pods.map(() => 0);
  // The kernel walks the chain in the same way, with an independent draw for each rule.
  for (let request = 0; request < 30_000; request++) {
    const taken = endpoints.findIndex(
      (_, at) => random.integer(1_000_000) < 1_000_000 / (endpoints.length - at),
    );
    counts[taken]!++;
  }
  return [
    act('cure', 'kube-proxy’s rule chain, evaluated 30 000 times', 'curl backend', [
      equal('endpoints', pods.join(' '), endpoints.map(({ ip }) => ip).join(' ')),
      ...shares(counts),
    ]),
  ];
}
