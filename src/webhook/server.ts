/** The webhook's HTTPS server: reviews, readiness, metrics. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Identity } from '../base/certificates.ts';
import { answerText } from '../base/http-answer.ts';
import { BadReview, readReview, reviewPod, type Mode, type ReviewedPod } from './admission.ts';
import type { AdviceSources } from './dns-advice.ts';

/** What the server is made of. */
export interface WebhookServerParts {
  readonly host: string;
  readonly port: number;
  readonly mode: Mode;
  /** What may ask for changes of this pod. Never rejects for what may happen. */
  readonly sources: (pod: ReviewedPod) => Promise<AdviceSources>;
  readonly metrics: WebhookMetrics;
  /** Prometheus text. */
  readonly scrape: () => string;
}

/** What is counted. */
export interface WebhookMetrics {
  /** `because`: annotation, namespace, advice, default, or none. */
  reviewed(because: string, seconds: number): void;
  refused(why: 'not-json' | 'too-large' | 'method' | 'bug'): void;
}

/** The API server takes objects up to 3 MiB; a review has the object and little more. */
const BODY_MAX = 4 * 1024 * 1024;
/** Replicas of the API server keep a few connections each. */
const CONNECTIONS_MAX = 512;

/** Serves from the first certificate on; `use` takes the next one for new connections. */
export class WebhookServer {
  readonly #parts: WebhookServerParts;
  readonly #server: Server;
  #ready = false;

  constructor(parts: WebhookServerParts) {
    this.#parts = parts;
    this.#server = createServer({
      minVersion: 'TLSv1.2',
      requestTimeout: 5000,
      headersTimeout: 5000,
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.keepAliveTimeout = 90_000;
    this.#server.on('request', (request, response) => void this.#take(request, response));
    // A handshake that fails is the client's matter.
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  /** @returns the port. @throws the system's error if it cannot listen */
  listen(): Promise<number> {
    const { host, port } = this.#parts;
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  use({ cert, key }: Identity): void {
    this.#server.setSecureContext({ cert, key });
    this.#ready = true;
  }

  /** Takes no more requests, and ends when those that are here are answered, or after two seconds. */
  async close(): Promise<void> {
    this.#ready = false;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeIdleConnections();
    const timer = setTimeout(() => this.#server.closeAllConnections(), 2000);
    await closed;
    clearTimeout(timer);
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split('?')[0];
    if (path === '/healthz') return answerText(response, 200, 'OK');
    if (path === '/readyz')
      return answerText(
        response,
        this.#ready ? 200 : 503,
        this.#ready ? 'OK' : 'no certificate yet',
      );
    if (path === '/metrics')
      return answerText(response, 200, this.#parts.scrape(), 'text/plain; version=0.0.4');
    if (path !== '/mutate') return answerText(response, 404, 'reviews are taken at /mutate');
    const { metrics } = this.#parts;
    if (request.method !== 'POST') {
      metrics.refused('method');
      return answerText(response, 405, 'reviews are posted');
    }
    const begun = performance.now();
    try {
      const body = await bodyOf(request);
      if (body === null) {
        metrics.refused('too-large');
        return answerText(response, 413, `a review has at most ${BODY_MAX} bytes`);
      }
      const review = readReview(body);
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

/** The whole body; null: it is too large. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > BODY_MAX) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
