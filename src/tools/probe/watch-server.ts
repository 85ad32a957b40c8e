/** The HTTP server behind `ndots check serve`: metrics, the current status as JSON, liveness and readiness. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { HttpAdmission } from '../../server/base/http-admission.ts';
import { answerText } from '../../server/base/http-answer.ts';
import { endHttp, listenHttp } from '../../server/base/http-listening.ts';
import { boundConnections } from '../../server/base/idle-connections.ts';
import { PageSender } from '../../server/base/page-sender.ts';
import { systemClock } from '../../server/base/clock.ts';
import { printExposition } from '../../server/metrics/exposition.ts';
import { contentTypes } from '../../server/metrics/formats.ts';
import { groupSamples } from '../../server/metrics/sample.ts';
import type { CheckSchedule } from './watch.ts';

/** The maximum number of connections; each scraper keeps one open. */
const CONNECTIONS_MAX = 64;

/** Answers HTTP requests about a schedule of checks. */
export class WatchServer {
  readonly #server: Server;

  constructor(watch: CheckSchedule) {
    this.#server = createServer({ requestTimeout: 5000, headersTimeout: 5000 });
    boundConnections(this.#server, CONNECTIONS_MAX);
    const pages = new PageSender(systemClock);
    const admission = new HttpAdmission();
    this.#server.on('request', (request, response) => {
      const path = request.url?.split('?')[0] ?? '/';
      admission.take({
        request,
        response,
        probe: path === '/healthz' || path === '/readyz',
        answer: () => answer(watch, pages, path, request, response),
      });
    });
  }

  /** @returns the port @throws the system error if it cannot listen */
  listen(host: string, port: number): Promise<number> {
    return listenHttp(this.#server, host, port);
  }

  close(): Promise<void> {
    return endHttp(this.#server, 0);
  }
}

function answer(
  watch: CheckSchedule,
  pages: PageSender,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  switch (path) {
    case '/metrics':
      return pages.send(request, response, path, contentTypes.text, () =>
        printExposition(groupSamples(watch.samples()).values(), 'text'),
      );
    case '/':
    case '/json':
      return pages.send(
        request,
        response,
        '/json',
        'application/json',
        () => `${JSON.stringify(watchDocument(watch), null, 2)}\n`,
      );
    case '/healthz':
      return answerText(response, 200, 'OK');
    case '/readyz':
      return watch.isReady
        ? answerText(response, 200, 'OK')
        : answerText(response, 503, 'first rounds run');
    default:
      return answerText(response, 404, '/metrics, /json, /healthz, /readyz');
  }
}

/** Builds the status of all targets as a JSON document. */
export function watchDocument(watch: CheckSchedule): object {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'CheckStatus',
    state: watch.state,
    targets: watch.status(),
  };
}
