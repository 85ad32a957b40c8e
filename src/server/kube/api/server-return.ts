/**
 * Detects that an API server is back, or that it again permits something it had forbidden. Sends one cheap request at a
 * time on behalf of all waiting callers.
 */
import { sleep, type Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { MalformedStream } from '../store/json-stream.ts';
import type { ApiClient } from './client.ts';
import { ApiFailure, type FailureKind } from './failure.ts';

export interface ServerReturnParts {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly random: Random;
}

/** A failed request that is to be repeated. */
export interface FailedRequest {
  readonly failure: ApiFailure;
  /** Path of the list or watch, which is probed if the failure is about permissions. */
  readonly path: string;
  /** Maximum wait in milliseconds. */
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

/** Minimum time between two probes in milliseconds. The maximum is twice as long. */
const PROBE_MS = 1000;
/** Number of consecutive permission probes after which they become less frequent, and the factor by which they do. */
const PATIENT_AFTER = 60;
const PATIENT_FACTOR = 3;
/** Maximum wait for a probe's answer, in milliseconds. */
const ANSWER_MS = 2000;
/** Maximum size of a probe's answer in bytes. At most one object is requested. */
const ANSWER_BYTES = 4 * 1024 * 1024;
/**
 * Milliseconds over which requests resume once the server is back, because all clients' replicas notice that within the
 * same few seconds.
 */
const SPREAD_MS = 2500;

/**
 * The goal of a probe. `reachable` means any answer at all, and `ready` an answer other than a server error. `allowed`
 * means that the list is permitted.
 */
type Wanted = 'reachable' | 'ready' | 'allowed';

const wantedAfter: Partial<Record<FailureKind, Wanted>> = {
  network: 'reachable',
  silent: 'reachable',
  tls: 'reachable',
  credentials: 'reachable',
  server: 'ready',
  unauthorized: 'allowed',
  forbidden: 'allowed',
};

interface Waiting {
  readonly wanted: Wanted;
  readonly path: string;
  readonly resume: () => void;
}

/**
 * Shortens the back-off of requests to one API server, but only if a probe has failed and a later one succeeds. If all
 * probes succeed, the requests fail for another reason, and their back-off is justified.
 */
export class ServerReturn {
  readonly #parts: ServerReturnParts;
  readonly #waiting = new Set<Waiting>();
  /** Ends the probing; null: nothing waits. */
  #probing: AbortController | null = null;

  constructor(parts: ServerReturnParts) {
    this.#parts = parts;
  }

  /**
   * Waits before a request is repeated. `Retry-After` is always respected.
   * @returns true if the wait was cut short because the server is back
   */
  async wait({ failure, path, waitMs, signal }: FailedRequest): Promise<boolean> {
    const { clock } = this.#parts;
    const heldMs = Math.min(failure.retryAfterMs ?? 0, waitMs);
    const wanted = wantedAfter[failure.kind];
    if (heldMs > 0) await sleep(clock, heldMs, signal);
    if (wanted === undefined) {
      await sleep(clock, waitMs - heldMs, signal);
      return false;
    }
    const cut = new AbortController();
    const resume = (): void => cut.abort();
    const waiting: Waiting = { wanted, path: wanted === 'allowed' ? path : '/readyz', resume };
    this.#waiting.add(waiting);
    void this.#probe();
    await sleep(clock, waitMs - heldMs, AbortSignal.any([cut.signal, signal]));
    this.#waiting.delete(waiting);
    if (this.#waiting.size === 0) this.#end();
    return cut.signal.aborted;
  }

  #end(): void {
    this.#probing?.abort();
    this.#probing = null;
  }

  async #probe(): Promise<void> {
    if (this.#probing !== null) return;
    const probing = new AbortController();
    this.#probing = probing;
    const { signal } = probing;
    const { clock, random } = this.#parts;
    /** Keys that failed, and keys that never failed. */
    const away = new Set<string>();
    const fine = new Set<string>();
    for (let probes = 0; !signal.aborted; probes++) {
      const patient = probes >= PATIENT_AFTER && away.has('allowed');
      const leastMs = patient ? PATIENT_FACTOR * PROBE_MS : PROBE_MS;
      await sleep(clock, leastMs + random.integer(leastMs), signal);
      const open = [...this.#waiting].filter((each) => !fine.has(keyOf(each)));
      // Forbidden kinds take turns.
      const probed = open[probes % Math.max(1, open.length)];
      if (probed === undefined || signal.aborted) break;
      const failure = await this.#ask(probed, signal);
      if (signal.aborted) break;
      if (!isBack(probed.wanted, failure)) {
        away.add(keyOf(probed)).add(probed.wanted);
        continue;
      }
      if (away.has(keyOf(probed))) this.#resume(probed.wanted);
      fine.add(keyOf(probed));
    }
    if (this.#probing === probing) this.#probing = null;
  }

  #resume(wanted: Wanted): void {
    const { clock, random } = this.#parts;
    for (const waiting of this.#waiting)
      if (waiting.wanted === wanted) clock.after(random.integer(SPREAD_MS), waiting.resume);
  }

  /** @returns the reason why the request did not succeed, or null if it did */
  async #ask({ wanted, path }: Waiting, signal: AbortSignal): Promise<ApiFailure | null> {
    let bytes = 0;
    try {
      await this.#parts.client.stream({
        path,
        query: wanted === 'allowed' ? { limit: '1' } : {},
        into: {
          push: (piece) => {
            bytes += piece.length;
            if (bytes > ANSWER_BYTES) throw new MalformedStream('an endless answer');
          },
        },
        task: `probe ${path}`,
        answerMs: ANSWER_MS,
        silenceMs: () => ANSWER_MS,
        watch: false,
        signal,
      });
      return null;
    } catch (error) {
      if (error instanceof ApiFailure) return error;
      return new ApiFailure({ kind: 'network', text: 'the probe was interrupted', cause: error });
    }
  }
}

const returns = new WeakMap<ApiClient, ServerReturn>();

/** Returns this client's instance. All users of a client share it, because they wait for the same server. */
export function serverReturn({ client, clock, random }: ServerReturnParts): ServerReturn {
  const known = returns.get(client);
  if (known !== undefined) return known;
  const made = new ServerReturn({ client, clock, random });
  returns.set(client, made);
  return made;
}

function keyOf({ wanted, path }: Waiting): string {
  return `${wanted} ${path}`;
}

function isBack(wanted: Wanted, failure: ApiFailure | null): boolean {
  if (failure === null) return true;
  if (wanted === 'allowed') return false;
  if (failure.status === 0) return false;
  return wanted === 'reachable' || (failure.status < 500 && failure.kind !== 'throttled');
}
