import type { Query } from '../query.ts';
import type { Protocol } from '../../wire/transports.ts';
import { Timed } from '../timer-wheel.ts';

/** The reason an exchange got no reply. */
export type ExchangeFailure =
  | 'timeout'
  | 'refused'
  | 'unreachable'
  | 'closed'
  | 'tls'
  | 'http'
  | 'garbled'
  | 'local';

/** The error of an exchange that got no reply, worded as in Go. */
export class ExchangeError extends Error {
  readonly failure: ExchangeFailure;
  constructor(failure: ExchangeFailure, text: string) {
    super(text);
    this.name = 'ExchangeError';
    this.failure = failure;
  }
}

/** The socket or connection that an exchange is waiting on. */
export interface Carrier {
  timeOut(exchange: UpstreamExchange): void;
}

/**
 * One query to one upstream, and the receiver of the result. Each start leads to exactly one call of `replied` or
 * `failed`, and never before `Upstream.start` has returned. Within that call, the same object may be started again.
 * Because it is an object, waiting needs no closures or promises, and forwarding can reuse the same objects.
 */
export abstract class UpstreamExchange extends Timed {
  /** Must be set before the start, and must own its bytes. */
  query!: Query;

  /** The start time and the transport, for measurements. */
  startedAt = 0;
  proto: Protocol = 'udp';

  /**
   * Used by the transport: the id on the wire, the carrier that the exchange waits on, and its neighbours in the
   * carrier's list.
   */
  id = 0;
  carrier: Carrier | null = null;
  next: UpstreamExchange | null = null;
  previous: UpstreamExchange | null = null;
  timeoutMs = 0;
  mark = 0;
  reused = false;

  /**
   * Called with the reply: `bytes[start, end)`, which is valid only during the call. It contains the query's question,
   * or is a bare header.
   * @param truncated true if the upstream set TC or the datagram was longer than the receive buffer
   * @param reused true if an existing socket or connection was used
   * @param now the clock's current time
   */
  abstract replied(
    bytes: Uint8Array,
    start: number,
    end: number,
    truncated: boolean,
    reused: boolean,
    now: number,
  ): void;

  abstract failed(error: ExchangeError, now: number): void;

  override expire(): void {
    this.carrier?.timeOut(this);
  }
}
