/** Errors in the configuration. */
import { lintCommand } from '../cluster/lint-command.ts';
import type { LintFinding } from '../../lint/finding.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown } from './finding.ts';

/** Errors in the configuration. */
export const flaws: FindingKind = {
  code: 'ND1001',
  title: 'The configuration has errors that ndots lint reports',
  name: 'errors in the configuration',
  inCluster(facts) {
    const { configuration } = facts;
    if (configuration === null) return unknown('no Corefile could be read');
    const errors = configuration.findings.filter(({ severity }) => severity === 'error');
    const warnings = configuration.findings.filter(({ severity }) => severity === 'warning');
    if (errors.length === 0)
      return excluded(
        `ndots lint finds no errors${warnings.length > 0 ? `, only warnings (${listed(codesOf(warnings), 6)})` : ''}`,
      );
    return {
      severity: 'warning',
      confidence: 0.8,
      seen: errors.slice(0, 5).map(({ code, text }) => `${code}: ${text}.`),
      affected: [
        ...new Set(
          errors.map(({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}`),
        ),
      ],
      why: 'Lint reports an error if a configuration breaks resolution, either now or at the next restart. Running servers may still use the previous configuration.',
      fix: [
        `Run ${lintCommand(facts)}, which shows the lines and how to correct them. With --explain CODE, it explains a rule.`,
      ],
      prove: lintCommand(facts),
      disproved: '',
      places: errors
        .slice(0, 5)
        .map(
          ({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}:${spot.line}`,
        ),
    };
  },
};

function codesOf(list: readonly LintFinding[]): readonly string[] {
  return [...new Set(list.map(({ code }) => code))];
}
