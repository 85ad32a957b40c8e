/** `ready`: readiness check over HTTP. */
import { optional } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { choice, hostPort, worded } from '../../corefile/word-values.ts';
import type { HttpHandler } from '../../engine/contract/control-context.ts';
import { answerText } from '../../base/http-answer.ts';
import { HeldRequests } from './held-requests.ts';
import { HOLD_MS, waitedMs } from '../../engine/contract/early-http.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

const address = hostPort('ADDRESS');

const syntax = directive({
  name: 'ready',
  summary: 'readiness check over HTTP',
  repeat: 'once',
  args: {
    address: optional(address, {
      default: { host: '', port: 8181 },
      help: 'listen address of `/ready`; blocks with the same address share it',
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
        help: 'whether a plugin that has been ready once stays ready or is checked on each request',
      },
    ),
  },
});

/** True once the server has been ready with any of its configurations. */
class Start {
  over = false;
  close(): void {}
}

/** Replies 200 if every plugin is ready, or 503 with the names of those that are not. */
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
    const start = context.keep('ready/start', () => new Start());
    let serving = false;
    context.onServing(() => {
      serving = true;
    });
    /** @returns null if everything is ready */
    const unready = (): string | null => {
      if (ending) return 'Shutting down';
      const waiting = missing().join(',');
      if (waiting !== '') return waiting;
      if (!serving && !start.over) return 'starting';
      start.over = true;
      return null;
    };
    const log = (waiting: string): void => context.log.info(`Plugins not ready: "${waiting}"`);
    const held = new HeldRequests(context.clock, unready, log);
    const handler: HttpHandler = (request, response) => {
      const waiting = unready();
      if (waiting === null) return answerText(response, 200, 'OK');
      const isKubelet = request.headers['user-agent']?.startsWith('kube-probe/') === true;
      if (isKubelet && !ending && !start.over)
        return held.add(response, HOLD_MS - waitedMs(request.socket));
      if (!ending) log(waiting);
      answerText(response, 503, waiting);
    };
    context.onStop(() => held.stop());
    context.http(address.print(at), '/ready', Object.assign(handler, { probe: true }));
  },
});
