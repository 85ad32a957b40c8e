/** From what was observed to findings, the gravest first, and to what it is not. */
import type { Observations } from './evidence/observations.ts';
import { Claims, isFinding, type Finding, type Rule } from './findings/finding.ts';
import { rules } from './findings/rules.ts';

/** What was looked for and not found. */
export interface NotFound {
  readonly code: string;
  /** For people: `the conntrack race`. */
  readonly name: string;
  readonly reason: string;
}

/** All that can be said. */
export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Looked for with enough to see it by. */
  readonly excluded: readonly NotFound[];
  /** What the capture cannot tell. */
  readonly unknown: readonly NotFound[];
}

const grades: Readonly<Record<Finding['severity'], number>> = { critical: 2, warning: 1, info: 0 };

/** Tries all rules. @param wanted which; all without it */
export function diagnose(
  observed: Observations,
  wanted: (rule: Rule) => boolean = () => true,
): Diagnosis {
  const claims = new Claims(observed);
  const findings: Finding[] = [];
  const excluded: NotFound[] = [];
  const unknown: NotFound[] = [];
  for (const rule of rules) {
    // A rule that is not wanted still explains what it explains.
    const verdict = rule.check(observed, claims);
    if (!wanted(rule)) continue;
    if (isFinding(verdict)) findings.push(verdict);
    else {
      const { code, name } = rule;
      (verdict.not === 'excluded' ? excluded : unknown).push({
        code,
        name,
        reason: verdict.reason,
      });
    }
  }
  // Of equal weight the one that is surer, then the one that explains more.
  findings.sort(
    (one, other) => grades[other.severity] - grades[one.severity] || weight(other) - weight(one),
  );
  return { findings, excluded, unknown };
}

/** How sure a finding is; among those that are about as sure, how much it is about. What was only counted comes behind. */
function weight({ confidence, exchanges }: Finding): number {
  if (exchanges.length === 0) return confidence - 0.5;
  return confidence + Math.min(0.15, Math.log10(1 + exchanges.length) * 0.05);
}
