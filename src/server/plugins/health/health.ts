/** `health`: liveness check over HTTP, and lameduck at shutdown. */
import { every, sleep, type Clock } from '../../base/clock.ts';
import { printDuration } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import { optional } from '../../corefile/positions.ts';
import { setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, hostPort, worded } from '../../corefile/word-values.ts';
import { slimBuckets } from '../../metrics/buckets.ts';
import { answerText } from '../../base/http-answer.ts';
import { sendHttp } from '../../base/http-request.ts';
import type { HttpHandler } from '../../engine/contract/control-context.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { whyFailed } from '../../base/why-failed.ts';

const address = worded(hostPort('ADDRESS'), (text, reason) =>
  // CoreDNS uses the address as part of a URL.
  /:\d*[^:\]\d][^:\]]*$/.test(text)
    ? `parse ${JSON.stringify(`http://${text}`)}: invalid port ${JSON.stringify(text.slice(text.lastIndexOf(':')))} after host`
    : reason,
);
const CHECK_MS = 1000;
const CHECK_TIMEOUT_MS = 3000;
/** Maximum size in bytes, because our own answer is just `OK`. */
const ANSWER_MAX = 1024;
/** If requests to itself take longer than this many milliseconds, a warning is logged. */
const SLOW_MS = 1000;

const syntax = directive({
  name: 'health',
  summary: 'liveness check over HTTP',
  repeat: 'merge',
  args: {
    address: optional(address, {
      default: { host: '', port: 8080 },
      help: 'listen address of `/health`',
    }),
  },
  properties: {
    lameduckMs: setting(
      'lameduck',
      worded(
        duration('DURATION'),
        (word, reason) => `unable to parse lameduck duration value: '${word}' : ${reason}`,
      ),
      { default: 0, help: 'how long to continue serving on shutdown' },
    ),
  },
});

/**
 * Replies 200 while at least one worker answers, and 503 otherwise. Sends itself a request every second to measure how
 * busy the process is.
 */
export const health: Plugin = definePlugin({
  syntax,
  operational: true,
  control(options, context) {
    const { clock, log, metrics } = context;
    const at = address.print(options.address);
    const handler: HttpHandler = (_request, response) => {
      if (context.answering()) answerText(response, 200, 'OK');
      else answerText(response, 503, 'no worker answers');
    };
    context.http(at, '/health', Object.assign(handler, { probe: true }));
    const durations = metrics
      .histogram(
        'coredns_health_request_duration_seconds',
        'Histogram of the time (in seconds) each request took.',
        [],
        slimBuckets,
      )
      .with();
    const failures = metrics.counter(
      'coredns_health_request_failures_total',
      'The number of times the health check failed.',
    );
    const { host, port } = options.address;
    const url = `http://${address.print({ host: loopbackOf(host), port })}/health`;
    context.onStart(() => {
      // If the system chose the port, only the server knows it.
      if (port === 0) return;
      const ticks = every(clock, CHECK_MS, () => {
        const begun = clock.now();
        askSelf(url, clock).then(
          () => {
            const elapsed = clock.now() - begun;
            durations.observe(elapsed / 1000);
            if (elapsed > SLOW_MS)
              log.warning(
                `Local health request to "${url}" took more than 1s: ${printDuration(elapsed)}`,
              );
          },
          (error: Error) => {
            durations.observe((clock.now() - begun) / 1000);
            failures.add(1);
            log.warning(`Local health request to "${url}" failed: ${whyFailed(error)}`);
          },
        );
      });
      context.onStop(() => ticks.cancel());
    });
    context.onShutdown(() => lameduck(options.lameduckMs, clock, log), options.lameduckMs);
  },
});

function lameduck(forMs: number, clock: Clock, log: Log): Promise<void> | void {
  if (forMs <= 0) return;
  log.info(`Going into lameduck mode for ${printDuration(forMs)}`);
  return sleep(clock, forMs);
}

function loopbackOf(host: string): string {
  if (host === '' || host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

/** Resolves once there is an answer, regardless of its status. */
async function askSelf(url: string, clock: Clock): Promise<void> {
  await sendHttp({
    url: new URL(url),
    clock,
    waitMs: CHECK_TIMEOUT_MS,
    late: `no answer within ${printDuration(CHECK_TIMEOUT_MS)}`,
    bytesMax: ANSWER_MAX,
    tooLong: 'the answer is from another server',
  });
}
