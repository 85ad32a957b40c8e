/** `bufsize`: the maximum size of UDP replies. */
import { optional } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { integer } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'bufsize',
  summary: 'limits the size of UDP replies',
  repeat: 'first',
  unread: ['lines'],
  args: {
    size: optional(integer('SIZE', { min: 512, max: 4096 }), {
      default: 1232,
      help: 'maximum size in bytes, 512 to 4096; the default avoids fragmentation on any path',
    }),
  },
});

/**
 * Limits the size of UDP replies to clients that accept larger ones. Clients without EDNS always get at most 512 bytes.
 */
export const bufsize: Plugin = definePlugin({
  syntax,
  setup({ size }, _context, next) {
    return (query) => {
      if (query.udpLimit > size) query.udpLimit = size;
      query.udpMost = size;
      return next(query);
    };
  },
});
