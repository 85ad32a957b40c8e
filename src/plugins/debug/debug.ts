import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../server/contract/plugin.ts';

export const syntax = directive({
  name: 'debug',
  summary: 'lets the process end on a bug instead of answering SERVFAIL',
  repeat: 'last',
});

/** Configures only. */
export const debug = definePlugin({
  syntax,
  plan(_options, plan) {
    plan.debug = true;
  },
});
