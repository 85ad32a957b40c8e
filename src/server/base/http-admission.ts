/**
 * Shares one thread's HTTP between clients: probes are answered at once, all other requests in
 * turn, and one client cannot have more than a few in progress.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { answerText } from './http-answer.ts';
import { unmapped } from './ip.ts';

/** The most requests in progress, from their arrival to the end of their answers; probes are exempt. */
export interface AdmissionLimits {
  /** Of one client address. */
  readonly each: number;
  /** Of all clients. */
  readonly all: number;
}

/** A scraper has one request in progress; several of them can share a node's address. */
const DEFAULTS: AdmissionLimits = { each: 8, all: 64 };
/** Requests answered in one turn of the event loop; a probe waits for this many at most. */
const PER_TURN = 4;
/**
 * Milliseconds that a connection stays half closed: closing it at once would discard the answer to
 * a client that is still sending.
 */
const LINGER_MS = 500;

/** The parts of a request that its handler needs. */
export interface AdmittedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Probes (liveness, readiness) are answered before everything else and are never refused. */
  readonly probe: boolean;
  /** Answers it; must not throw. */
  readonly answer: () => void;
}

/**
 * Decides when a request is answered. Requests of different addresses take turns. A request beyond
 * the limits is answered 503 with Retry-After. Requests of one connection are never queued: one that
 * arrives before the previous answer is complete (pipelining, RFC 9112 section 9.3.2) closes the
 * connection after that answer.
 */
export class HttpAdmission {
  readonly #limits: AdmissionLimits;
  readonly #onRefused: () => void;
  /** Connections with a current request; true: another request has arrived. */
  readonly #busy = new Map<Socket, boolean>();
  readonly #clients = new Map<string, ClientTurns>();
  #under = 0;
  #scheduled = false;

  /** @param onRefused called for each request that is answered 503 or not at all */
  constructor(onRefused: () => void = () => undefined, limits: AdmissionLimits = DEFAULTS) {
    this.#limits = limits;
    this.#onRefused = onRefused;
  }

  take(admitted: AdmittedRequest): void {
    const { request, response, probe, answer } = admitted;
    const { socket } = request;
    const pipelined = this.#busy.get(socket);
    if (pipelined !== undefined) {
      // Further input of the client is not read.
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
      answerText(response, 503, 'too many requests at once: try again\n');
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

  /** Answers one request of each client in turn, `PER_TURN` in all. */
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
      // The client is the last one in the next turn.
      this.#clients.delete(address);
      this.#clients.set(address, client);
      answer();
    }
    if (answered > 0) this.#schedule();
  }
}

interface ClientTurns {
  /** Requests in progress, waiting ones included. */
  under: number;
  readonly waiting: (() => void)[];
}

/** The client's address; IPv4 in its own spelling on a socket of both families. */
export function addressOf({ remoteAddress = '' }: Socket): string {
  return unmapped(remoteAddress);
}

/** Closes a connection whose client may still be sending. */
export function closeSlowly(socket: Socket): void {
  socket.end();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}
