/** `limits`: limits on clients' use of listeners. */
import { setting } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import { byteSize, integer } from '../../corefile/word-values.ts';
import { limits as range } from '../../transport/limits/limits.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const syntax = directive({
  name: 'limits',
  summary: 'limits the connections, in-flight queries and memory of each listener',
  repeat: 'gather',
  properties: {
    waiting: setting('waiting', integer('COUNT', range.waiting), {
      help: `in-flight queries (default ${range.waiting.default}, or fewer if memory is limited: with 170 MiB, 8738 shared by the workers, or 5010 with four workers)`,
    }),
    connections: setting('connections', integer('COUNT', range.connections), {
      help: `open connections (default ${range.connections.default}, with TLS ${range.secureConnections.default})`,
    }),
    handshakes: setting('handshakes', integer('COUNT', range.handshakes), {
      help: `additional connections in the TLS handshake (default ${range.handshakes.default})`,
    }),
    pipelined: setting('pipelined', integer('COUNT', range.pipelined), {
      help: `in-flight queries on one connection (default ${range.pipelined.default})`,
    }),
    streams: setting('streams', integer('COUNT', range.streams), {
      help: `in-flight requests on one HTTP/2 connection (default ${range.streams.default})`,
    }),
    unreadBytes: setting('unread', byteSize('SIZE', range.unreadBytes), {
      help: 'replies that one client has not read yet (default 128KiB)',
    }),
    heldBytes: setting('held', byteSize('SIZE', range.heldBytes), {
      help: 'memory for all clients of a listener (default 16MiB; if the container has a memory limit, 1/32 of it for all workers together, but at least 1MiB in each)',
    }),
  },
  check: (options, at) =>
    options.some(({ at: _place, ...given }) => Object.values(given).some((limit) => limit !== null))
      ? []
      : [pluginProblem('limits', at, 'limits block with no limits specified')],
});

/**
 * Affects only the configuration. Limits apply to each listener in each worker, and the first block with a shared
 * address decides.
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
