/** The syntax and defaults of the `autopath` directive. */
import type { Problem } from '../../base/problem.ts';
import { last, zones, type Position } from '../../corefile/positions.ts';
import { list, type PropertySchema } from '../../corefile/properties.ts';
import { directive, type Options, type Syntax } from '../../corefile/syntax.ts';
import { domainName, word, worded } from '../../corefile/word-values.ts';
import { pluginRemark } from '../../corefile/problems.ts';

/** Marks the form that takes the search path from the queried name. */
export const BY_NAME = '@name';

export const syntax: Syntax<
  {
    zones: Position<readonly string[]>;
    from: Position<string>;
  },
  {
    search: PropertySchema<readonly string[]>;
  },
  'last'
> = directive({
  name: 'autopath',
  summary: "completes names with the client's search path in one query instead of several",
  repeat: 'last',
  args: {
    zones: zones({ help: 'complete only names in these zones' }),
    from: last(word('@name|@kubernetes|RESOLV_CONF'), {
      missing: 'no resolv-conf specified',
      help:
        'source of the search path: `@name`, the queried name; `@kubernetes`, the namespace of the querying pod; ' +
        'or a file in resolv.conf format, for all clients',
    }),
  },
  properties: {
    search: list(
      'search',
      worded(domainName('DOMAIN'), (text) => `not a search domain: ${text}`),
      {
        help: "search domains that follow the cluster's own three; default: those in this server's /etc/resolv.conf",
      },
    ),
  },
  warn(options, at): readonly Problem[] {
    if (options.search.length === 0 || options.from.startsWith('@')) return [];
    const text = `search is ignored, because ${options.from} contains the whole search path`;
    return [pluginRemark('autopath', at, text, { code: 'directive-warning' })];
  },
});

export type AutopathOptions = Options<typeof syntax>;
