/** All plugins, loaded. */
import { loadPlugins } from '../../src/plugins/order.ts';
import type { Plugin } from '../../src/server/contract/plugin.ts';

/** Every plugin, in chain order. */
export const plugins: readonly Plugin[] = await loadPlugins();
