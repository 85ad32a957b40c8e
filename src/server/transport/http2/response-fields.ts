/** Reads header blocks of responses. */
import { HeaderDecoder, isSame } from './header-decoder.ts';

/** Longer status messages are ignored. */
const TEXT_MAX = 1024;

/**
 * Extracts the fields a DNS or gRPC client needs from a response's header blocks. The decoder's table belongs to the
 * connection, so every block must be read. No objects are created for other fields.
 */
export class ResponseFields {
  /** `:status`; 0 if missing or invalid. */
  http = 0;
  /** `grpc-status`; -1 if missing or invalid. */
  status = -1;
  /** `grpc-message`, still percent-encoded. */
  message = '';
  readonly #decoder = new HeaderDecoder();

  /** @returns false if the block is malformed, in which case the connection is unusable */
  read(bytes: Uint8Array, start: number, end: number): boolean {
    const decoder = this.#decoder;
    this.http = 0;
    this.status = -1;
    this.message = '';
    decoder.begin(bytes, start, end);
    while (decoder.next()) {
      const { name, nameStart, nameEnd, value, valueStart, valueEnd } = decoder;
      if (isSame(name, nameStart, nameEnd, HTTP))
        this.http = numberOf(value, valueStart, valueEnd, 3) ?? 0;
      else if (isSame(name, nameStart, nameEnd, STATUS))
        this.status = numberOf(value, valueStart, valueEnd, 0) ?? -1;
      else if (isSame(name, nameStart, nameEnd, MESSAGE)) {
        const length = Math.min(TEXT_MAX, valueEnd - valueStart);
        this.message = Buffer.from(value.buffer, value.byteOffset + valueStart, length).toString(
          'latin1',
        );
      }
    }
    return !decoder.broken;
  }
}

const HTTP = Buffer.from(':status');
const STATUS = Buffer.from('grpc-status');
const MESSAGE = Buffer.from('grpc-message');

/** @param size the exact number of digits, or 0 for one to four */
function numberOf(bytes: Uint8Array, start: number, end: number, size: number): number | null {
  const length = end - start;
  if (size === 0 ? length < 1 || length > 4 : length !== size) return null;
  let number = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i]! - 0x30;
    if (digit < 0 || digit > 9) return null;
    number = number * 10 + digit;
  }
  return number;
}
