/** The receiving half of every model socket. */
import type { Clock } from '../../server/base/clock.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { ArrivalQueue } from './arrival-queue.ts';
import type { Arrival, Fault, QueryToSend, SentQuery, Socket } from './network.ts';

/** A socket that receives through a queue. Subclasses implement sending. */
export abstract class ReceivingSocket implements Socket {
  abstract readonly protocol: SocketKind;
  abstract readonly port: number;
  protected readonly arrivals: ArrivalQueue;

  /** @param clock the clock of the socket's network */
  constructor(clock: Clock) {
    this.arrivals = new ArrivalQueue(clock);
  }

  abstract connect(server: string, allErrors?: boolean): Fault | null;
  abstract send(query: QueryToSend, server: string): SentQuery | Fault;
  abstract close(): void;

  take(): Arrival | null {
    return this.arrivals.take();
  }

  wait(until: number): Promise<Arrival | null> {
    return this.arrivals.wait(until);
  }

  watch(run: () => void): () => void {
    return this.arrivals.watch(run);
  }
}
