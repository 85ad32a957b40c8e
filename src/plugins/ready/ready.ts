/** `ready`: readiness over HTTP. */
import { optional } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { choice, hostPort, worded } from '../../corefile/values.ts';
import type { HttpHandler } from '../../server/contract/control-context.ts';
import { answerText } from '../../base/http-answer.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';

const address = hostPort('ADDRESS');

const syntax = directive({
  name: 'ready',
  summary: 'readiness over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: '', port: 8181 },
      help: 'where `/ready` is served; blocks of one address share it',
    }),
  },
  properties: {
    monitor: setting(
      'monitor',
      worded(
        choice('until-ready', 'continuously'),
        (word) => `monitor type '${word}' not supported`,
      ),
      {
        default: 'until-ready',
        help: 'whether a plugin that was ready once counts as ready for good, or is asked each time',
      },
    ),
  },
});

/**
 * 200 when every plugin that has something to wait for is ready, 503 with the names of the others.
 */
export const ready: Plugin = definePlugin({
  syntax,
  operational: true,
  control({ address: at, monitor }, context) {
    const readiness = context.observeReadiness();
    const latched = new Set<string>();
    let ending = false;
    context.onShutdown(() => {
      ending = true;
    });
    const missing = (): readonly string[] => {
      const names: string[] = [];
      for (const [name, isReady] of readiness()) {
        if (latched.has(name)) continue;
        if (!isReady) names.push(name);
        else if (monitor === 'until-ready') latched.add(name);
      }
      return names.toSorted();
    };
    const handler: HttpHandler = (_request, response) => {
      if (ending) return answerText(response, 503, 'Shutting down');
      const waiting = missing().join(',');
      if (waiting === '') return answerText(response, 200, 'OK');
      context.log.info(`Plugins not ready: "${waiting}"`);
      answerText(response, 503, waiting);
    };
    context.http(address.print(at), '/ready', Object.assign(handler, { probe: true }));
  },
});
