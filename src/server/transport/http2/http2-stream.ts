import type { GatheredMessage } from '../stream/gathered-message.ts';
import { Timed } from '../timer-wheel.ts';

/** A request in progress: its body is incomplete, or its reply is pending or cannot be sent yet. */
export class Http2Stream extends Timed {
  readonly id: number;
  /** Reply bytes that the client permits us to send on this stream. */
  window: number;
  /** Length of the body from the header, or -1 if not given. */
  readonly contentLength: number;
  /** The query, if it is not in the body. */
  question: Uint8Array | null = null;
  /** The received pieces of the body. */
  body: GatheredMessage | null = null;
  /** Bytes that the client may still send on this stream. */
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
