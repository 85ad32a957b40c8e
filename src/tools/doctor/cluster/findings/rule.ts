/** What a finding about a living cluster is made by. */
import type { Finding, Rule, Verdict } from '../../findings/finding.ts';
import { unknown } from '../../findings/finding.ts';
import type { CheckResult } from '../../../probe/round.ts';
import type { Answers } from '../asking.ts';
import type { ClusterFacts } from '../facts.ts';

/** A finding's code, title, and name for the closing list of what it is not. */
export type About = Pick<Rule, 'code' | 'title' | 'name'>;

/**
 * Looks for one thing in the facts of a cluster. The codes are those of captures where the cause is
 * the same.
 */
export interface ClusterRule extends About {
  check(facts: ClusterFacts): Verdict;
}

/** A rule; one about a cause that captures show as well takes its code and title from there. */
export function clusterRule(
  { code, title, name }: About,
  check: (facts: ClusterFacts, about: About) => Verdict,
): ClusterRule {
  const about = { code, title, name };
  return { ...about, check: (facts) => check(facts, about) };
}

/** The command that shows what the linter says of the configuration. */
export function lintCommand({ namespace }: Pick<ClusterFacts, 'namespace'>): string {
  return `ndots lint --cluster${namespace === 'kube-system' ? '' : ` -n ${namespace}`}`;
}

/** A finding; no packets show it. */
export function finding(
  { code, title }: About,
  parts: Omit<Finding, 'code' | 'title' | 'exchanges'>,
): Finding {
  return { affected: [], ...parts, code, title, exchanges: [] };
}

/** The text if no server could be asked. */
const notAsked: Verdict = unknown(
  'this machine is not in the pod network, or no DNS pod was found to ask',
);

/** A rule about what servers answer. */
export function askingRule(
  about: About,
  check: (answers: Answers, facts: ClusterFacts, about: About) => Verdict,
): ClusterRule {
  return clusterRule(about, (facts, own) =>
    facts.answers === null ? notAsked : check(facts.answers, facts, own),
  );
}

/**
 * What one of the checks found wrong at servers whose answer over plain UDP is right: what is wrong
 * there is wrong in every way. Null: it was not run, or could not be.
 */
export function failuresOf(
  { checks, replicas, vips }: Answers,
  name: string,
): CheckResult['observations'] | null {
  const result = checks.get(name);
  if (result === undefined || result.state === 'unknown') return null;
  const fine = [...replicas, ...vips].filter(({ outcome }) => outcome === 'NOERROR');
  if (fine.length === 0) return null;
  const right = new Set(fine.map(({ server }) => server));
  return result.observations.filter(({ state, target }) => state === 'failed' && right.has(target));
}
