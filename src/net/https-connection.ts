import type { HeldBytes, Holder } from './held-bytes.ts';
import type { ListenerCounters, StreamLimits } from './listener.ts';
import { Timed, type TimerWheel } from './timer-wheel.ts';

/** What connections of one listener share. */
export interface HttpsHost {
  readonly wheel: TimerWheel;
  readonly heldBytes: HeldBytes<HttpsConnection>;
  readonly counters: ListenerCounters;
  readonly limits: StreamLimits;
}

/** The HTTP/2 session or HTTP/1.1 socket behind it. */
export interface HttpsPeer {
  /** No more requests; what is under way may finish. */
  finish(): void;
  destroy(): void;
}

/**
 * One client's connection: how long it may go on without asking anything (frames that ask nothing, such as PING, do not
 * count), and how much it makes us hold (bodies it has not finished, replies it has not read).
 */
export class HttpsConnection extends Timed implements Holder {
  readonly #host: HttpsHost;
  readonly #peer: HttpsPeer;
  #held = 0;
  #finishing = false;

  constructor(host: HttpsHost, peer: HttpsPeer) {
    super();
    this.#host = host;
    this.#peer = peer;
    host.wheel.set(this, host.limits.idleTimeoutMs);
  }

  get held(): number {
    return this.#held;
  }

  /** A whole request has come. */
  asked(): void {
    if (!this.#finishing) this.#host.wheel.set(this, this.#host.limits.idleTimeoutMs);
  }

  /** Bytes are kept from now on, or (negative) no longer. */
  hold(bytes: number): void {
    this.#held += bytes;
    this.#host.heldBytes.tell(this, this.#held);
  }

  override expire(): void {
    this.#host.counters.timedOut++;
    if (this.#finishing) return this.#peer.destroy();
    this.#finishing = true;
    this.#host.wheel.set(this, this.#host.limits.writeTimeoutMs);
    this.#peer.finish();
  }

  destroy(): void {
    this.#peer.destroy();
  }

  /** The connection is gone. */
  closed(): void {
    this.#finishing = true;
    this.#host.wheel.cancel(this);
    this.#host.heldBytes.forget(this);
  }
}
