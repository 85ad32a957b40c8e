/** `metadata`: collects information from plugins about a query before it is answered. */
import { zones } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import {
  metadataCollector,
  metadataProviders,
  type MetadataProvider,
} from '../../engine/contract/ports.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import type { Query } from '../../transport/query.ts';

const syntax = directive({
  name: 'metadata',
  summary:
    'collects metadata about each query from other plugins, for use in log, view, rewrite and dnstap',
  repeat: 'once',
  unread: ['braces'],
  args: { zones: zones({ help: 'collect labels only for names in these zones' }) },
});

/** Gives every query a metadata map, which the block's plugins fill before any of them answers. */
export const metadata: Plugin = definePlugin({
  syntax,
  setup(options, context, next) {
    const here = new ZoneMatch(options.zones);
    let providers: readonly MetadataProvider[] | null = null;
    const collect = (query: Query): void => {
      providers ??= context.find(metadataProviders);
      const notes = new Map<string, string>();
      query.notes = notes;
      if (here.holds(query)) for (const provide of providers) provide(query, notes);
    };
    if (context.has('view')) {
      // If a view needs metadata to decide whether this block serves the query, the view triggers the collection.
      context.offer(metadataCollector, collect);
      return next;
    }
    return (query) => {
      collect(query);
      return next(query);
    };
  },
});
