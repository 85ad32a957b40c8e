/** All `ndots lint` rules, both static ones and those that query the network. */
import type { LintRule } from '../../../tools/lint/lint-rule.ts';
import { liveRules } from '../../../tools/lint/live/live-rules.ts';
import { rules as offlineRules } from '../../../tools/lint/plugins/lint-rules.ts';

/** `--live`, `--only` and `--ignore` determine which ones run. */
export const lintRules: readonly LintRule[] = [...offlineRules, ...liveRules];
