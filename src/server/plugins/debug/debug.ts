/** `debug`: bugs end the worker, and debug lines are logged. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'debug',
  summary: 'lets a bug end the worker thread instead of recovering from it',
  repeat: 'last',
});

/** Only affects configuration. */
export const debug: Plugin = definePlugin({
  syntax,
  operational: true,
  plan(_options, plan) {
    plan.debug = true;
  },
});
