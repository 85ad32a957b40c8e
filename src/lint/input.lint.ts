/** Codes of what the linter itself tells: CF48, comments that ask for nothing; CF49, input that cannot be read. */
import type { LintRule } from './rule.ts';

/** They have no rule to ask: reading finds them. */
export const inputRules: readonly LintRule[] = [
  {
    code: 'CF48',
    severity: 'warning',
    summary: 'a comment ndots:ignore without reason, of an unknown code, or for nothing',
    find: () => {},
  },
  {
    code: 'CF49',
    severity: 'error',
    summary: 'YAML that cannot be read',
    find: () => {},
  },
];
