/** The rules of `ndots lint --live`. */
import type { LiveRule } from './live-rule.ts';
import { nameRules } from './names.live.ts';
import { upstreamRules } from './upstreams.live.ts';

/** All of them. A code that was used once is never used for something else. */
export const liveRules: readonly LiveRule[] = [...upstreamRules, ...nameRules];
