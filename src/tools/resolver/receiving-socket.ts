/** The receiving half of every model socket: its unread arrivals and the readers that wait for them. */
import type { Clock } from '../../server/base/clock.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import type { Arrival, Fault, QueryToSend, SentQuery, Socket } from './network.ts';

/** A socket whose arrivals are read oldest first. Subclasses implement sending. */
export abstract class ReceivingSocket implements Socket {
  abstract readonly protocol: SocketKind;
  abstract readonly port: number;
  readonly #clock: Clock;
  readonly #watchers = new Set<() => void>();
  #arrivals: Arrival[] = [];

  /** @param clock the clock of the socket's network */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  abstract connect(server: string, allErrors?: boolean): Fault | null;
  abstract send(query: QueryToSend, server: string): SentQuery | Fault;
  abstract close(): void;

  /**
   * Adds an arrival. Watchers are called slightly later rather than immediately, because a program that is sending
   * reads new packets in its next system call.
   */
  push(arrival: Arrival): void {
    this.#arrivals.push(arrival);
    for (const run of [...this.#watchers])
      queueMicrotask(() => {
        // Skips a watcher that stopped watching during an earlier arrival.
        if (this.#watchers.has(run)) run();
      });
  }

  take(): Arrival | null {
    return this.#arrivals.shift() ?? null;
  }

  /**
   * Returns the latest unread fault, or null. Older ones are discarded with it, because the kernel stores only one
   * (SO_ERROR).
   */
  takeFault(): Fault | null {
    const last = this.#arrivals.findLast((arrival) => arrival.kind === 'fault');
    if (last === undefined) return null;
    this.#arrivals = this.#arrivals.filter((arrival) => arrival.kind !== 'fault');
    return last.fault;
  }

  wait(until: number): Promise<Arrival | null> {
    const ready = this.take();
    const delay = until - this.#clock.now();
    if (ready !== null || delay <= 0) return Promise.resolve(ready);
    return new Promise((resolve) => {
      const finish = (arrival: Arrival | null): void => {
        stop();
        timer?.cancel();
        resolve(arrival);
      };
      const timer = Number.isFinite(delay) ? this.#clock.after(delay, () => finish(null)) : null;
      const stop = this.watch(() => {
        const arrival = this.take();
        if (arrival !== null) finish(arrival);
      });
    });
  }

  watch(run: () => void): () => void {
    if (this.#arrivals.length > 0) {
      queueMicrotask(run);
      return () => {};
    }
    this.#watchers.add(run);
    return () => this.#watchers.delete(run);
  }

  /** Discards unread arrivals. */
  clear(): void {
    this.#arrivals = [];
  }
}
