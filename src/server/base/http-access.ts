/** Decides which HTTP requests are answered, based on the token they carry. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { every, type Clock } from './clock.ts';
import { isSameSecret } from './secret-file.ts';

/**
 * Milliseconds for which an endless reply continues without a decision. An API server outage must not end the very view
 * needed to investigate it. On the other hand, a withdrawn permission must not last as long as the outage.
 */
const UNDECIDED_MS = 5 * 60_000;

/** A request as far as permissions are concerned. */
export interface AccessRequest {
  readonly token: string | null;
  /** The HTTP method in lower case, as in RBAC rules. */
  readonly verb: string;
  readonly path: string;
}

/** The reason why a request is not answered. 503 means that no decision is possible at the moment. */
export interface AccessRefusal {
  readonly status: 401 | 403 | 503;
  readonly text: string;
}

/** The result of a decision, or null if the request is accepted. */
export type AccessDecision = AccessRefusal | null;

export interface AccessGate {
  /** Never rejects. */
  decide(request: AccessRequest): AccessDecision | Promise<AccessDecision>;
  /**
   * Interval between decisions about an endless reply, in milliseconds. Null means that the first decision remains
   * valid.
   */
  readonly againMs: number | null;
}

/**
 * Accepts a single secret.
 * @param secret read for each request; null if it is unreadable at the moment
 */
export function secretGate(secret: () => string | null): AccessGate {
  return {
    againMs: null,
    decide({ token }) {
      const wanted = secret();
      if (wanted === null) return { status: 503, text: 'the token of this server cannot be read' };
      if (token !== null && isSameSecret(token, wanted)) return null;
      return { status: 401, text: 'the token is missing or wrong' };
    },
  };
}

/**
 * Repeats the decision about an endless reply for as long as it lasts.
 * @param end called once, if the request is no longer accepted
 */
export function decideAgain(
  gate: AccessGate,
  request: AccessRequest,
  response: ServerResponse,
  clock: Clock,
  end: (refusal: AccessRefusal) => void,
): void {
  if (gate.againMs === null || response.destroyed) return;
  let acceptedMs = clock.now();
  const timer = every(clock, gate.againMs, () => {
    void Promise.resolve(gate.decide(request)).then((refusal) => {
      if (refusal === null) acceptedMs = clock.now();
      else if (refusal.status !== 503 || clock.now() - acceptedMs >= UNDECIDED_MS) {
        timer.cancel();
        if (!response.destroyed) end(refusal);
      }
    });
  });
  response.once('close', () => timer.cancel());
}

/** Returns a request's token. The API server does not pass `Authorization` on to a pod, so we use our own header. */
export function tokenIn(request: Pick<IncomingMessage, 'headers'>): string | null {
  const own = request.headers['ndots-console'];
  return typeof own === 'string' ? own : bearerIn(request);
}

export function bearerIn({ headers }: Pick<IncomingMessage, 'headers'>): string | null {
  return /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}
