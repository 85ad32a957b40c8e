/** The plugins that the linter knows. */
import { directiveNames, external, loadPlugins } from '../../../server/plugins/order.ts';
import type { KnownPlugins } from '../../../tools/lint/read-subject.ts';

export const lintedPlugins: KnownPlugins = {
  directives: directiveNames,
  external,
  load: loadPlugins,
};
