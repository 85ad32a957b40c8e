/** HTTP/2 frames (RFC 9113 section 4.1): a nine-byte header followed by the payload. */
import { readUint32 } from '../../base/big-endian.ts';

/** Size of a frame's header. */
export const FRAME_HEADER = 9;

/** A client's first bytes (section 3.4). */
export const PREFACE: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Maximum payload size unless the peer permits more, which this program never does. */
export const PAYLOAD_MAX = 16_384;

/** Initial flow control window in bytes, per stream and per connection. */
export const WINDOW = 65_535;
/** Maximum window size (section 6.9.1). */
export const WINDOW_MAX = 0x7fffffff;

/** Frame types (section 6). */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Frame flags, whose meaning depends on the type. */
export const FLAG = {
  ACK: 0x1,
  END_STREAM: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

/** Settings identifiers (section 6.5.2). */
export const SETTING = {
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** Error codes used to end a stream or a connection (section 7). */
export const ERROR = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  ENHANCE_YOUR_CALM: 11,
} as const;

/**
 * Writes a frame's header.
 * @returns the position of its payload
 */
export function writeFrameHeader(
  out: Uint8Array,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  out[at] = length >> 16;
  out[at + 1] = length >> 8;
  out[at + 2] = length;
  out[at + 3] = type;
  out[at + 4] = flags;
  return writeWord(out, at + 5, stream);
}

/**
 * Writes 32 bits.
 * @returns the position after them
 */
export function writeWord(out: Uint8Array, at: number, word: number): number {
  out[at] = word >>> 24;
  out[at + 1] = word >>> 16;
  out[at + 2] = word >>> 8;
  out[at + 3] = word;
  return at + 4;
}

/** Reads 32 bits, clearing the reserved first one. */
export function readWord(bytes: Uint8Array, at: number): number {
  return readUint32(bytes, at) & 0x7fff_ffff;
}
