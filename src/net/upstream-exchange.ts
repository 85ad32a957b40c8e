import type { Query } from '../wire/query.ts';
import type { Protocol } from '../wire/transports.ts';
import { Timed } from './timer-wheel.ts';

/** Why an exchange brought no reply. */
export type ExchangeFailure =
  | 'timeout'
  | 'refused'
  | 'unreachable'
  | 'closed'
  | 'tls'
  | 'http'
  | 'garbled'
  | 'local';

/** An exchange that brought no reply; the message is as Go has it. */
export class ExchangeError extends Error {
  readonly failure: ExchangeFailure;
  constructor(failure: ExchangeFailure, text: string) {
    super(text);
    this.name = 'ExchangeError';
    this.failure = failure;
  }
}

/** What an exchange waits on: a socket, a connection. */
export interface Carrier {
  timeOut(exchange: UpstreamExchange): void;
}

/**
 * One query at one upstream, and who waits for what becomes of it: `replied` or `failed` is called, once for each start, and
 * never before `Upstream.start` has returned. Within that call the same object may be started again. It is an object for the
 * waiting to be without closures and promises: whoever forwards much uses the same ones again and again.
 */
export abstract class UpstreamExchange extends Timed {
  /** To be set before the start; it owns its bytes. */
  query!: Query;

  /** When it was started and over what, for who measures. */
  startedAt = 0;
  proto: Protocol = 'udp';

  /** The transport's own: the id that the query was sent with, where it waits, and who else waits there. */
  id = 0;
  carrier: Carrier | null = null;
  next: UpstreamExchange | null = null;
  previous: UpstreamExchange | null = null;
  timeoutMs = 0;
  mark = 0;
  reused = false;

  /**
   * A reply came: `bytes[start, end)` with the query's question, or a bare header; valid during the call only.
   * @param truncated the upstream set TC, or the datagram was too long to be taken whole
   * @param reused whether a socket or connection was used again
   * @param now the clock's time
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
