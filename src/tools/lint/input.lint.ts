/** The linter's own findings: CF48 for ineffective suppression comments, and CF49 for input that cannot be read. */
import type { LintRule } from './lint-rule.ts';

/** Rules without `find`, because their findings are made while reading the input. */
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
