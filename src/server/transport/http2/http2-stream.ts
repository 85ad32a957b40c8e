import type { GatheredMessage } from '../stream/gathered-message.ts';
import { Timed } from '../timer-wheel.ts';

/** A request in progress. Its body is incomplete, its reply is pending, or the reply cannot be sent yet. */
export class Http2Stream extends Timed {
  readonly id: number;
  /** Number of reply bytes that the client currently allows on this stream. */
  window: number;
  /** Body length given in the header, or -1 if there was none. */
  readonly contentLength: number;
  /** The query, if it is not in the body. */
  question: Uint8Array | null = null;
  /** The received pieces of the body. */
  body: GatheredMessage | null = null;
  /** Number of bytes that the client may still send on this stream. */
  receiveWindow: number;
  /** True once the whole request has arrived. */
  asked = false;
  /** True if the client no longer wants the reply. */
  closed = false;
  /** The unsent rest of the reply's body. */
  reply: Uint8Array | null = null;
  readonly #late: (stream: Http2Stream) => void;

  /** @param late called if the body does not arrive in time */
  constructor(
    id: number,
    window: number,
    receiveWindow: number,
    contentLength: number,
    late: (stream: Http2Stream) => void,
  ) {
    super();
    this.id = id;
    this.window = window;
    this.receiveWindow = receiveWindow;
    this.contentLength = contentLength;
    this.#late = late;
  }

  override expire(): void {
    this.#late(this);
  }
}
