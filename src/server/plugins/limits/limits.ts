/** `limits`: how much clients may ask of listeners. */
import { setting } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import { byteSize, integer } from '../../corefile/word-values.ts';
import { limits as range } from '../../transport/limits/limits.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'limits',
  summary: 'bounds what clients may ask of the listeners',
  repeat: 'gather',
  properties: {
    waiting: setting('waiting', integer('COUNT', range.waiting), {
      help: `queries that may wait for their replies (default ${range.waiting.default}, or what memory has room for: 8738 of 170 MiB, shared by the workers, 5010 with four)`,
    }),
    connections: setting('connections', integer('COUNT', range.connections), {
      help: `connections at a time (default ${range.connections.default}, with TLS ${range.secureConnections.default})`,
    }),
    handshakes: setting('handshakes', integer('COUNT', range.handshakes), {
      help: `connections in their TLS handshake, besides (default ${range.handshakes.default})`,
    }),
    pipelined: setting('pipelined', integer('COUNT', range.pipelined), {
      help: `queries of one connection that may wait (default ${range.pipelined.default})`,
    }),
    streams: setting('streams', integer('COUNT', range.streams), {
      help: `requests of one HTTP/2 connection at a time (default ${range.streams.default})`,
    }),
    unreadBytes: setting('unread', byteSize('SIZE', range.unreadBytes), {
      help: 'replies that one client may leave unread (default 128KiB)',
    }),
    heldBytes: setting('held', byteSize('SIZE', range.heldBytes), {
      help: 'memory that all clients of a listener may take (default 16MiB; where memory is limited a 32nd of it in all workers together, 1MiB at least in each)',
    }),
  },
  check: (options, at) =>
    options.some(({ at: _place, ...given }) => Object.values(given).some((limit) => limit !== null))
      ? []
      : [pluginProblem('limits', at, 'limits block with no limits specified')],
});

/**
 * Configures only. For each listener of each worker; the first block of a shared address decides.
 */
export const limits: Plugin = definePlugin({
  syntax,
  plan(options, plan) {
    for (const { at: _place, ...given } of options) {
      for (const [name, limit] of Object.entries(given)) {
        if (limit !== null) plan.limits[name as keyof typeof given] = limit;
      }
    }
  },
});
