/** The configuration has errors. */
import { lintCommand } from '../cluster/lint-command.ts';
import type { LintFinding } from '../../lint/finding.ts';
import { listed } from '../texts.ts';
import { type FindingKind, excluded, unknown, clusterFinding } from './finding.ts';

/** The configuration has errors. */
export const flaws: FindingKind = {
  code: 'ND1001',
  title: 'The linter reports errors in the configuration',
  name: 'errors in the configuration',
  inCluster(facts) {
    const { configuration } = facts;
    if (configuration === null) return unknown('no Corefile could be read');
    const errors = configuration.findings.filter(({ severity }) => severity === 'error');
    const warnings = configuration.findings.filter(({ severity }) => severity === 'warning');
    if (errors.length === 0)
      return excluded(
        `the linter finds no error${warnings.length > 0 ? `, but warnings: ${listed(codesOf(warnings), 6)}` : ''}`,
      );
    return clusterFinding(this, {
      severity: 'warning',
      confidence: 0.8,
      seen: errors.slice(0, 5).map(({ code, text }) => `${code}: ${text}.`),
      affected: [
        ...new Set(
          errors.map(({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}`),
        ),
      ],
      why: 'Errors from the linter are configurations that break resolution, now or at the next restart: running servers may still use the previous configuration.',
      fix: [
        `${lintCommand(facts)} shows the lines and how to correct them; --explain CODE shows the reason.`,
      ],
      prove: lintCommand(facts),
      disproved: '',
      places: errors
        .slice(0, 5)
        .map(
          ({ spot, within }) => `${spot.file}${within === null ? '' : ` ${within}`}:${spot.line}`,
        ),
    });
  },
};

function codesOf(list: readonly LintFinding[]): readonly string[] {
  return [...new Set(list.map(({ code }) => code))];
}
