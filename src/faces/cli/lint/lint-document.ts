/** Findings for programs, as printed by `ndots lint -o json` (schema: docs/lint.schema.json). */
import type { LintFinding, Spot } from '../../../tools/lint/finding.ts';
import type { LintReport } from '../../../tools/lint/lint.ts';

export interface LintDocument extends Pick<LintReport, 'files' | 'notJudged' | 'suppressed'> {
  readonly apiVersion: 'ndots.dev/v1';
  readonly kind: 'LintReport';
  readonly target: string | null;
  readonly findings: readonly (Omit<LintFinding, 'spot'> & Spot)[];
}

export function lintDocument(report: LintReport): LintDocument {
  const { findings, files, notJudged, target, suppressed } = report;
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'LintReport',
    target: target === null ? null : target.kind === 'ndots' ? 'ndots' : target.label,
    files,
    notJudged,
    suppressed,
    findings: findings.map(({ spot, ...finding }) => ({ ...finding, ...spot })),
  };
}
