/**
 * The HTTP server for `ndots check serve`, which provides metrics, the current status as JSON, liveness and readiness.
 */
import { answerText } from '../../server/base/http-answer.ts';
import { ScrapedServer } from '../../server/base/scraped-server.ts';
import { printExposition } from '../../server/metrics/exposition.ts';
import { contentTypes } from '../../server/metrics/formats.ts';
import { groupSamples } from '../../server/metrics/sample.ts';
import type { CheckSchedule } from './watch.ts';

/** Answers HTTP requests about a schedule of checks. */
export class WatchServer extends ScrapedServer {
  constructor(watch: CheckSchedule) {
    super({
      probes: ['/healthz', '/readyz'],
      answer(path, request, response, pages) {
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
      },
    });
  }
}

/** Builds a JSON document with the status of all targets. */
export function watchDocument(watch: CheckSchedule): object {
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'CheckStatus',
    state: watch.state,
    targets: watch.status(),
  };
}
