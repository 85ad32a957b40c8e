/** The webhook's HTTPS server: reviews, readiness and metrics. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { PemIdentity } from './certificates.ts';
import { systemClock } from '../../server/base/clock.ts';
import { HttpAdmission } from '../../server/base/http-admission.ts';
import { answerText } from '../../server/base/http-answer.ts';
import { PageSender } from '../../server/base/page-sender.ts';
import { endHttp, listenHttp } from '../../server/base/http-listening.ts';
import { boundConnections } from '../../server/base/idle-connections.ts';
import { IncomingBodies } from '../../server/base/incoming-bodies.ts';
import { BadReview, readReview, reviewPod, type Mode, type ReviewedPod } from './admission.ts';
import type { AdviceSources } from './dns-advice.ts';

export interface WebhookServerParts {
  readonly host: string;
  readonly port: number;
  readonly mode: Mode;
  /** Returns the sources for a pod. Does not reject for expected failures. */
  readonly sources: (pod: ReviewedPod) => Promise<AdviceSources>;
  readonly metrics: WebhookMetrics;
  /** Returns the metrics as Prometheus text. */
  readonly scrape: () => string;
  /** Concurrent connections; default 512. */
  readonly connectionsMax?: number;
}

export interface WebhookMetrics {
  /** `because`: annotation, namespace, advice, default or none. */
  reviewed(because: string, seconds: number): void;
  refused(why: 'not-json' | 'too-large' | 'busy' | 'method' | 'bug'): void;
}

/** Limit in bytes. The API server accepts objects up to 3 MiB, and the review around them adds little. */
const BODY_MAX = 4 * 1024 * 1024;
/**
 * Total size in bytes of incomplete reviews, which any client in the cluster may send. Beyond this, the oldest are
 * dropped.
 */
const HELD_MAX = 16 * 1024 * 1024;
/**
 * Limit on JSON values in a review. A pod has a few hundred, while four megabytes of empty ones would take up a hundred
 * megabytes of memory.
 */
const VALUES_MAX = 200_000;
/** Each API server replica keeps a few connections open. */
const CONNECTIONS_MAX = 512;
/**
 * Time limit for a request in milliseconds. The API server gives up after two seconds, so anything slower is another
 * client.
 */
const SLOW_MS = 5000;
/** Grace period for open requests at shutdown, milliseconds. */
const GRACE_MS = 2000;

/** Starts serving once there is a certificate. `use` sets the certificate for new connections. */
export class WebhookServer {
  readonly #parts: WebhookServerParts;
  readonly #server: Server;
  readonly #bodies = new IncomingBodies({ each: BODY_MAX, all: HELD_MAX });
  readonly #pages = new PageSender(systemClock);
  readonly #admission = new HttpAdmission();
  #ready = false;

  constructor(parts: WebhookServerParts) {
    this.#parts = parts;
    this.#server = createServer({
      minVersion: 'TLSv1.2',
      handshakeTimeout: SLOW_MS,
      requestTimeout: SLOW_MS,
      headersTimeout: SLOW_MS,
      connectionsCheckingInterval: 1000,
    });
    boundConnections(this.#server, parts.connectionsMax ?? CONNECTIONS_MAX);
    this.#server.keepAliveTimeout = 90_000;
    this.#server.on('request', (request, response) => this.#admit(request, response));
    // Failed handshakes are the client's problem.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /**
   * Starts listening.
   * @returns the port
   * @throws the system's error if it cannot listen
   */
  listen(): Promise<number> {
    const { host, port } = this.#parts;
    return listenHttp(this.#server, host, port);
  }

  use({ cert, key }: PemIdentity): void {
    this.#server.setSecureContext({ cert, key });
    this.#ready = true;
  }

  /** Stops accepting requests and allows up to two seconds for those in progress. */
  close(): Promise<void> {
    this.#ready = false;
    return endHttp(this.#server, GRACE_MS);
  }

  /** Answers reviews concurrently, because the API server sends them in parallel and waits for each. */
  #admit(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url?.split('?')[0] ?? '/';
    const answer = (): void => void this.#take(path, request, response);
    if (path === '/mutate') return answer();
    const probe = path === '/healthz' || path === '/readyz';
    this.#admission.take({ request, response, probe, answer });
  }

  async #take(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (path === '/healthz') return answerText(response, 200, 'OK');
    if (path === '/readyz')
      return answerText(
        response,
        this.#ready ? 200 : 503,
        this.#ready ? 'OK' : 'no certificate yet',
      );
    if (path === '/metrics')
      return this.#pages.send(request, response, path, 'text/plain; version=0.0.4', () =>
        this.#parts.scrape(),
      );
    if (path !== '/mutate') return answerText(response, 404, 'reviews are accepted at /mutate');
    const { metrics } = this.#parts;
    if (request.method !== 'POST') {
      metrics.refused('method');
      return answerText(response, 405, 'reviews are posted');
    }
    const begun = performance.now();
    try {
      const come = await this.#bodies.read(request);
      // The API server closed the connection while sending, so it cannot receive a reply.
      if (come === 'gone') return metrics.refused('not-json');
      if (come === 'too-large') {
        metrics.refused(come);
        return refuse(response, 413, `a review may have at most ${BODY_MAX} bytes`);
      }
      if (come === 'busy') {
        metrics.refused(come);
        return refuse(response, 503, 'too many reviews are in progress');
      }
      const body = come.bytes;
      if (valuesIn(body) > VALUES_MAX) {
        metrics.refused('too-large');
        return refuse(response, 413, `a review may have at most ${VALUES_MAX} values`);
      }
      const review = readReview(body.toString('utf8'));
      const { advice, body: answer } = reviewPod(
        review,
        await this.#parts.sources(review),
        this.#parts.mode,
      );
      metrics.reviewed(advice.because.split(' ')[0] || 'none', (performance.now() - begun) / 1000);
      answerText(response, 200, answer, 'application/json');
    } catch (error) {
      const bad = error instanceof BadReview;
      metrics.refused(bad ? 'not-json' : 'bug');
      if (!response.headersSent)
        answerText(response, bad ? 400 : 500, bad ? error.message : 'a bug');
    }
  }
}

/** Rejects a request and leaves the rest of it unread. */
function refuse(response: ServerResponse, status: number, text: string): void {
  response.setHeader('connection', 'close');
  answerText(response, status, text);
}

const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** An upper bound on the number of JSON values, computed without parsing. Includes commas inside strings. */
function valuesIn(body: Buffer): number {
  let count = 1;
  for (const byte of body) if (byte === COMMA || byte === BRACKET || byte === BRACE) count++;
  return count;
}
