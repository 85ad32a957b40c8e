/** One worker as seen by the control thread. */
import { Problem } from '../../base/problem.ts';
import type { Registration } from '../../metrics/registration.ts';
import type { FromWorker, Program, ToWorker } from '../contract/protocol.ts';
import type { Pulse } from '../contract/pulse.ts';

/** The connection to one worker, either to its thread or within this thread in tests. */
export interface WorkerPort {
  /** The worker's heartbeat, or null if it runs on this thread. */
  readonly pulse: Pulse | null;
  /** Milliseconds for which its event loop has been busy and idle so far, or null if unknown. */
  times(): { readonly active: number; readonly idle: number } | null;
  send(message: ToWorker, transfer?: readonly ArrayBuffer[]): void;
  onMessage(handler: (message: FromWorker) => void): void;
  /** Called when the worker dies. Any messages after that are lost. */
  onExit(handler: (error: Error) => void): void;
  /**
   * Asks the worker to end, and forces it to if it does not do so in time. `onExit` is not called in this case.
   * @param hangs true if the worker is known not to respond, so there is no point in waiting
   * @returns true if it ended. The runtime cannot interrupt a call outside JavaScript
   */
  end(hangs: boolean): Promise<boolean>;
  /** Resolves when it has ended, in any way. */
  readonly ended: Promise<void>;
}

/** A worker's reports, except the outcome of orders. */
export interface WorkerEvents {
  join(worker: WorkerLink, channel: string): void;
  leave(worker: WorkerLink, channel: string): void;
  post(worker: WorkerLink, channel: string, message: unknown): void;
  register(worker: WorkerLink, registration: Registration): void;
  exit(worker: WorkerLink, error: Error): void;
}

/** An instruction to a worker, which reports when it is done. */
export type Order =
  | { readonly kind: 'prepare'; readonly program: Program }
  | { readonly kind: 'open' | 'commit' | 'discard'; readonly generation: number }
  | { readonly kind: 'close'; readonly graceMs: number };

interface PendingOrder {
  readonly kind: Order['kind'];
  resolve(): void;
  reject(error: Error): void;
}

/** The main thread's view of one worker: orders, which are acknowledged, and messages, which are not. */
export class WorkerLink {
  readonly id: number;
  /** Actual ports by listen address, as last reported. */
  ports: Readonly<Record<string, number>> = {};
  readonly #port: WorkerPort;
  readonly #pending = new Map<number, PendingOrder>();
  #seq = 0;
  #gone: Error | null = null;
  #serving = false;
  #ended: Promise<boolean> | null = null;

  constructor(id: number, port: WorkerPort, events: WorkerEvents) {
    this.id = id;
    this.#port = port;
    port.onMessage((message) => this.#take(message, events));
    port.onExit((error) => {
      this.giveUp(error);
      events.exit(this, error);
    });
  }

  /** True if the worker has died or was abandoned, and is going to be replaced. */
  get gone(): boolean {
    return this.#gone !== null;
  }

  /** True if it has a configuration to serve. */
  get serving(): boolean {
    return this.#serving && this.#gone === null;
  }

  /** See `WorkerPort.times`. Also null for a worker that has ended. */
  get times(): { readonly active: number; readonly idle: number } | null {
    return this.#gone === null ? this.#port.times() : null;
  }

  get pulse(): Pulse | null {
    return this.#port.pulse;
  }

  /** Abandons the worker. Orders in progress fail with `error`, and its messages are ignored. */
  giveUp(error: Error): void {
    if (this.#gone !== null) return;
    this.#gone = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  /**
   * Resolves when the worker has carried out the order.
   * @throws Problem reported by the worker
   */
  order(order: Order): Promise<void> {
    if (this.#gone !== null) return Promise.reject(this.#gone);
    const seq = this.#seq++;
    return new Promise((resolve, reject) => {
      this.#pending.set(seq, { kind: order.kind, resolve, reject });
      this.#port.send({ ...order, seq } as ToWorker);
    });
  }

  deliver(channel: string, message: unknown, transfer?: readonly ArrayBuffer[]): void {
    this.#port.send({ kind: 'deliver', channel, message }, transfer);
  }

  /** See `WorkerPort.end`. */
  end(hangs = false): Promise<boolean> {
    return (this.#ended ??= this.#port.end(hangs));
  }

  /** See `WorkerPort.ended`. */
  get ended(): Promise<void> {
    return this.#port.ended;
  }

  #take(message: FromWorker, events: WorkerEvents): void {
    if (this.#gone !== null) return;
    switch (message.kind) {
      case 'done': {
        this.ports = message.ports;
        const pending = this.#pending.get(message.seq);
        this.#pending.delete(message.seq);
        if (message.problem === null) {
          if (pending?.kind === 'commit') this.#serving = true;
          pending?.resolve();
        } else {
          pending?.reject(new Problem(message.problem));
        }
        return;
      }
      case 'join':
        return events.join(this, message.channel);
      case 'leave':
        return events.leave(this, message.channel);
      case 'post':
        return events.post(this, message.channel, message.message);
      case 'register':
        return events.register(this, message.registration);
    }
  }
}
