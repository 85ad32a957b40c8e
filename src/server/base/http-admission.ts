/**
 * Shares one thread's HTTP capacity among clients. Probes are answered immediately and other requests in turn. No
 * client may have more than a few in progress.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { answerText } from './http-answer.ts';
import { unmapped } from './ip.ts';

/** Limits on requests in progress, from arrival until the answer is complete. Probes are exempt. */
export interface AdmissionLimits {
  /** Per client address. */
  readonly each: number;
  /** For all clients. */
  readonly all: number;
}

/** A scraper has one request in progress, but several scrapers may share a node's address. */
const DEFAULTS: AdmissionLimits = { each: 8, all: 64 };
/** Number of requests answered per turn of the event loop, which is the most that a probe has to wait for. */
const PER_TURN = 4;
/**
 * Milliseconds for which a connection stays half-closed. Closing it at once would discard the answer to a client that
 * is still sending.
 */
const LINGER_MS = 500;

/** The parts of a request that the admission control needs. */
export interface AdmittedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Probes (liveness and readiness) are answered first and are never refused. */
  readonly probe: boolean;
  /** Sends the answer; must not throw. */
  readonly answer: () => void;
}

/**
 * Decides when each request is answered. Requests from different addresses take turns. Requests beyond the limits get
 * 503 with Retry-After. Requests on the same connection are never queued. If one arrives before the previous answer is
 * complete (pipelining, RFC 9112 section 9.3.2), the connection closes after that answer.
 */
export class HttpAdmission {
  readonly #limits: AdmissionLimits;
  readonly #onRefused: () => void;
  /** Connections with a request in progress. The value is true if another request has arrived. */
  readonly #busy = new Map<Socket, boolean>();
  readonly #clients = new Map<string, ClientTurns>();
  #under = 0;
  #scheduled = false;

  /** @param onRefused called for each request that gets a 503 or no answer at all */
  constructor(onRefused: () => void = () => undefined, limits: AdmissionLimits = DEFAULTS) {
    this.#limits = limits;
    this.#onRefused = onRefused;
  }

  take(admitted: AdmittedRequest): void {
    const { request, response, probe, answer } = admitted;
    const { socket } = request;
    const pipelined = this.#busy.get(socket);
    if (pipelined !== undefined) {
      // Stop reading input from this client.
      this.#busy.set(socket, true);
      socket.pause();
      if (!pipelined) this.#onRefused();
      return;
    }
    this.#busy.set(socket, false);
    response.once('close', () => {
      if (this.#busy.get(socket) === true) closeSlowly(socket);
      this.#busy.delete(socket);
    });
    if (probe) answer();
    else this.#queue(admitted);
  }

  #queue({ request, response, answer }: AdmittedRequest): void {
    const address = addressOf(request.socket);
    const client = this.#clients.get(address) ?? { under: 0, waiting: [] };
    if (this.#under >= this.#limits.all || client.under >= this.#limits.each) {
      this.#onRefused();
      response.setHeader('retry-after', '1');
      answerText(response, 503, 'too many requests at once; try again\n');
      return;
    }
    this.#under++;
    client.under++;
    this.#clients.set(address, client);
    response.once('close', () => {
      this.#under--;
      if (--client.under === 0) this.#clients.delete(address);
    });
    client.waiting.push(() => {
      if (!response.destroyed) answer();
    });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#turn());
  }

  /** Answers one request per client in turn, up to `PER_TURN` in total. */
  #turn(): void {
    this.#scheduled = false;
    let answered = 0;
    for (const [address, client] of [...this.#clients]) {
      const answer = client.waiting.shift();
      if (answer === undefined) continue;
      if (answered === PER_TURN) {
        client.waiting.unshift(answer);
        return this.#schedule();
      }
      answered++;
      // Move the client to the back of the queue.
      this.#clients.delete(address);
      this.#clients.set(address, client);
      answer();
    }
    if (answered > 0) this.#schedule();
  }
}

interface ClientTurns {
  /** Requests in progress, including queued ones. */
  under: number;
  readonly waiting: (() => void)[];
}

/** Returns the client's address, with IPv4-mapped addresses in IPv4 notation. */
export function addressOf({ remoteAddress = '' }: Socket): string {
  return unmapped(remoteAddress);
}

/** Closes a connection whose client may still be sending. */
export function closeSlowly(socket: Socket): void {
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
