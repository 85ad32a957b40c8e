import type { GatheredMessage } from '../stream/gathered-message.ts';
import { Timed } from '../timer-wheel.ts';

/**
 * A request that is not over: its body is still coming, its reply is awaited, or may not leave yet.
 */
export class Http2Stream extends Timed {
  readonly id: number;
  /** Bytes of reply that the client lets us send on this stream. */
  window: number;
  /** The length of the body according to the header; -1: not given. */
  readonly contentLength: number;
  /** The query, if it does not come in the body. */
  question: Uint8Array | null = null;
  /** The received pieces of the body. */
  body: GatheredMessage | null = null;
  /** Bytes that the client may still send on this stream. */
  receiveWindow: number;
  /** The whole request has come. */
  asked = false;
  /** The client no longer wants the reply. */
  closed = false;
  /** The unsent rest of the reply's body. */
  reply: Uint8Array | null = null;
  readonly #late: (stream: Http2Stream) => void;

  /** @param late called when the body has not come in time */
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
