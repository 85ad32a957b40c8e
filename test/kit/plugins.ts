import { loadPlugins } from '../../src/server/plugins/order.ts';
import type { Plugin } from '../../src/server/engine/contract/plugin.ts';

/** Every plugin, in chain order. */
export const plugins: readonly Plugin[] = await loadPlugins();
