/** The rules of `ndots lint --live`. */
import type { LiveRule } from './live-rule.ts';
import { nameRules } from './names.live.ts';
import { upstreamRules } from './upstreams.live.ts';

/** All of them. A code that has been used is never reused for something else. */
export const liveRules: readonly LiveRule[] = [...upstreamRules, ...nameRules];
