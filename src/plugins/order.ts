import type { Plugin } from '../server/plugin.ts';

/**
 * Every plugin, in the order of the chain (CoreDNS 1.14.7's): a query meets them from top to bottom, whatever the order of
 * the directives in the Corefile. Adding a plugin is one import and one line here.
 */
export const plugins: readonly Plugin[] = [];
