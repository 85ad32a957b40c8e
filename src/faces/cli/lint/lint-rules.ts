/** All rules of `ndots lint`: static ones, and those that query the network. */
import type { LintRule } from '../../../tools/lint/lint-rule.ts';
import { liveRules } from '../../../tools/lint/live/live-rules.ts';
import { rules as offlineRules } from '../../../tools/lint/plugins/lint-rules.ts';

/** All of them; which ones are run, `--live`, `--only` and `--ignore` say. */
export const lintRules: readonly LintRule[] = [...offlineRules, ...liveRules];
