/**
 * The linter's own findings: CF48, ineffective suppression comments; CF49, input that cannot be
 * read.
 */
import type { LintRule } from './lint-rule.ts';

/** Rules without `find`; the findings are made while the input is read. */
export const inputRules: readonly LintRule[] = [
  {
    code: 'CF48',
    severity: 'warning',
    summary: 'an ndots:ignore comment without a reason, with an unknown code, or without a finding',
    find: () => {},
  },
  {
    code: 'CF49',
    severity: 'error',
    summary: 'YAML that cannot be read',
    find: () => {},
  },
];
