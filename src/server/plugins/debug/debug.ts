/** `debug`: bugs end the worker, and debug lines are logged. */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'debug',
  summary: 'lets a worker end on a bug instead of going on',
  repeat: 'last',
});

/** Configures only. */
export const debug: Plugin = definePlugin({
  syntax,
  operational: true,
  plan(_options, plan) {
    plan.debug = true;
  },
});
