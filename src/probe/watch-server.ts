/**
 * The HTTP server of `ndots check serve`: metrics, the current status as JSON, liveness and
 * readiness.
 */
import { createServer, type Server } from 'node:http';
import { endHttp, listenHttp } from '../base/http-listening.ts';
import { boundConnections } from '../base/idle-connections.ts';
import { printExposition } from '../metrics/exposition.ts';
import { groupSamples } from '../metrics/sample.ts';
import type { CheckSchedule } from './watch.ts';

/** The most connections; each scraper keeps one. */
const CONNECTIONS_MAX = 64;

/** Answers HTTP requests about a schedule of checks. */
export class WatchServer {
  readonly #server: Server;

  constructor(watch: CheckSchedule) {
    this.#server = createServer({ requestTimeout: 5000, headersTimeout: 5000 });
    boundConnections(this.#server, CONNECTIONS_MAX);
    this.#server.on('request', (request, response) => {
      const [status, type, body] = pageOf(watch, request.url?.split('?')[0] ?? '/');
      response.writeHead(status, { 'content-type': type });
      response.end(request.method === 'HEAD' ? '' : body);
    });
  }

  /** @returns the port @throws the system's error if it cannot listen */
  listen(host: string, port: number): Promise<number> {
    return listenHttp(this.#server, host, port);
  }

  close(): Promise<void> {
    return endHttp(this.#server, 0);
  }
}

function pageOf(
  watch: CheckSchedule,
  path: string,
): readonly [status: number, type: string, body: string] {
  switch (path) {
    case '/metrics':
      return [
        200,
        'text/plain; version=0.0.4; charset=utf-8',
        printExposition(groupSamples(watch.samples()).values(), 'text'),
      ];
    case '/':
    case '/json':
      return [200, 'application/json', `${JSON.stringify(watchDocument(watch), null, 2)}\n`];
    case '/healthz':
      return [200, 'text/plain', 'OK'];
    case '/readyz':
      return watch.isReady ? [200, 'text/plain', 'OK'] : [503, 'text/plain', 'first rounds run'];
    default:
      return [404, 'text/plain', '/metrics, /json, /healthz, /readyz'];
  }
}

/** The status of all targets as a JSON document. */
export function watchDocument(watch: CheckSchedule): object {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'CheckStatus',
    state: watch.state,
    targets: watch.status(),
  };
}
