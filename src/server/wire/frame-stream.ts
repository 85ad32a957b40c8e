/**
 * Frame Streams (the fstrm protocol), a stream of frames, each preceded by its length, between a START and a STOP
 * control frame. On sockets, a handshake comes first. A frame length of zero announces a control frame.
 */
import { ReadError } from './reader.ts';

/** Control frame types (the Frame Streams protocol of fstrm). */
export const CONTROL = { ACCEPT: 1, START: 2, STOP: 3, READY: 4, FINISH: 5 } as const;

const CONTENT_TYPE = 1;
/** Maximum length of a control frame accepted by implementations. */
const CONTROL_MAX = 512;

/** A control frame: its type and content types. */
export interface ControlFrame {
  readonly type: number;
  readonly contentTypes: readonly string[];
}

export function writeControl(type: number, contentTypes: readonly string[] = []): Uint8Array {
  const fields = contentTypes.flatMap((each) => {
    const text = Buffer.from(each);
    return [u32(CONTENT_TYPE), u32(text.length), text];
  });
  const body = Buffer.concat([u32(type), ...fields]);
  return Buffer.concat([u32(0), u32(body.length), body]);
}

/**
 * Returns true if the sender of this control frame accepts frames of `contentType`. A sender that lists no content
 * types accepts all.
 */
export function accepts({ contentTypes }: ControlFrame, contentType: string): boolean {
  return contentTypes.length === 0 || contentTypes.includes(contentType);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Splits a byte stream into frames. Call `push` with the received bytes, and then `next` until it returns null. */
export class FrameReader {
  readonly #most: number;
  /**
   * Unread bytes are in `[#start, #end)`. The buffer has spare room after them, so that small pieces are copied only
   * once.
   */
  #buffer: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;

  /** @param most maximum size of a frame, in bytes */
  constructor(most: number) {
    this.#most = most;
  }

  push(bytes: Uint8Array): void {
    const held = this.#end - this.#start;
    if (this.#end + bytes.length > this.#buffer.length) {
      // Returned frames point into the old buffer, which must not change. The rest therefore moves to a new one.
      const bigger = Buffer.allocUnsafeSlow(Math.max(held + bytes.length, 2 * held));
      this.#buffer.copy(bigger, 0, this.#start, this.#end);
      this.#buffer = bigger;
      this.#start = 0;
      this.#end = held;
    }
    this.#buffer.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /**
   * Returns the next complete frame, or null if more bytes are needed.
   * @throws ReadError
   */
  next(): ControlFrame | Uint8Array | null {
    const bytes = this.#buffer.subarray(this.#start, this.#end);
    if (bytes.length < 4) return null;
    const length = bytes.readUInt32BE(0);
    if (length > 0) {
      if (length > this.#most) throw new ReadError(`a frame of ${length} bytes`, 0);
      if (bytes.length < 4 + length) return null;
      this.#start += 4 + length;
      return bytes.subarray(4, 4 + length);
    }
    if (bytes.length < 8) return null;
    const size = bytes.readUInt32BE(4);
    if (size < 4 || size > CONTROL_MAX) throw new ReadError(`a control frame of ${size} bytes`, 4);
    if (bytes.length < 8 + size) return null;
    this.#start += 8 + size;
    return readControl(bytes.subarray(8, 8 + size));
  }
}

function readControl(bytes: Buffer): ControlFrame {
  const contentTypes: string[] = [];
  let at = 4;
  while (at + 8 <= bytes.length) {
    const field = bytes.readUInt32BE(at);
    const length = bytes.readUInt32BE(at + 4);
    at += 8;
    if (field !== CONTENT_TYPE || at + length > bytes.length) break;
    contentTypes.push(bytes.toString('utf8', at, at + length));
    at += length;
  }
  if (at !== bytes.length) throw new ReadError('a control frame that cannot be read', at);
  return { type: bytes.readUInt32BE(0), contentTypes };
}
