/**
 * As much of HTTP/2 (RFC 9113) and its header compression (RFC 7541) as a client needs that asks the same thing again and again:
 * requests with headers that are not compressed, and of a response the status.
 */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAGS = {
  END_STREAM: 0x1,
  ACK: 0x1,
  END_HEADERS: 0x4,
  PADDED: 0x8,
  PRIORITY: 0x20,
} as const;

export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
} as const;

export const CODE = { NO_ERROR: 0, FLOW_CONTROL: 3, REFUSED_STREAM: 7, CANCEL: 8 } as const;

/** Bytes of a frame's header. */
export const FRAME_HEADER = 9;
/** The largest frame that either side may send without having asked. */
export const FRAME_MAX = 16_384;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export interface FrameHeader {
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
}

/** The header at `at`, which must be whole. */
export function readFrameHeader(bytes: Buffer, at: number): FrameHeader {
  return {
    length: bytes.readUIntBE(at, 3),
    type: bytes[at + 3]!,
    flags: bytes[at + 4]!,
    stream: bytes.readUInt32BE(at + 5) & 0x7fff_ffff,
  };
}

/** @returns where the payload begins */
export function writeFrameHeader(
  out: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  stream: number,
): number {
  out.writeUIntBE(length, at, 3);
  out[at + 3] = type;
  out[at + 4] = flags;
  return out.writeUInt32BE(stream, at + 5);
}

/** A frame whose payload is some 32-bit numbers. */
export function numbersFrame(
  type: number,
  flags: number,
  stream: number,
  ...numbers: readonly number[]
): Buffer {
  const out = Buffer.alloc(FRAME_HEADER + 4 * numbers.length);
  let at = writeFrameHeader(out, 0, 4 * numbers.length, type, flags, stream);
  for (const number of numbers) at = out.writeUInt32BE(number, at);
  return out;
}

/** What a client says first: no header table, no pushes, and how much it takes without being asked, per stream and in all. */
export function greeting(streamWindow: number, window: number): Buffer {
  const settings = [
    [SETTING.HEADER_TABLE_SIZE, 0],
    [SETTING.ENABLE_PUSH, 0],
    [SETTING.INITIAL_WINDOW_SIZE, streamWindow],
  ] as const;
  const out = Buffer.alloc(FRAME_HEADER + 6 * settings.length);
  let at = writeFrameHeader(out, 0, 6 * settings.length, FRAME.SETTINGS, 0, 0);
  for (const [name, value] of settings) {
    at = out.writeUInt16BE(name, at);
    at = out.writeUInt32BE(value, at);
  }
  const more = numbersFrame(FRAME.WINDOW_UPDATE, 0, 0, window - 65_535);
  return Buffer.concat([PREFACE, out, more]);
}

/** Numbers of the static table's entries (RFC 7541 appendix A). */
const STATIC = {
  AUTHORITY: 1,
  GET: 2,
  POST: 3,
  PATH: 4,
  HTTPS: 7,
  STATUS: 8,
  STATUS_LAST: 14,
  ACCEPT: 19,
  CONTENT_LENGTH: 28,
  CONTENT_TYPE: 31,
} as const;
const STATUSES = [200, 204, 206, 304, 400, 404, 500];

/** The header block of a request, all of it but `:path` (GET), or `content-length` (POST), which end it. */
export function requestBlock(
  method: 'GET' | 'POST',
  authority: string,
  path: string,
  mediaType: string,
): Buffer {
  const post = method === 'POST';
  return Buffer.concat([
    Buffer.of(0x80 | (post ? STATIC.POST : STATIC.GET), 0x80 | STATIC.HTTPS),
    field(STATIC.AUTHORITY, authority),
    ...(post ? [field(STATIC.PATH, path)] : []),
    ...(post ? [field(STATIC.ACCEPT, mediaType), field(STATIC.CONTENT_TYPE, mediaType)] : []),
  ]);
}

/** The end of a POST request's block. */
export function contentLength(length: number): Buffer {
  return field(STATIC.CONTENT_LENGTH, String(length));
}

/** The end of a GET request's block: pseudo-headers come before all others. */
export function pathAndAccept(path: string, mediaType: string): Buffer {
  return Buffer.concat([field(STATIC.PATH, path), field(STATIC.ACCEPT, mediaType)]);
}

/** A field that nobody is to remember, with a name of the static table (RFC 7541 section 6.2.2). */
function field(name: number, value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(name, 4, 0), integer(bytes.length, 7, 0), bytes]);
}

/** An integer with a prefix of so many bits (RFC 7541 section 5.1). */
function integer(value: number, bits: number, first: number): Buffer {
  const most = (1 << bits) - 1;
  if (value < most) return Buffer.of(first | value);
  const out = [first | most];
  for (value -= most; value >= 0x80; value = Math.floor(value / 0x80))
    out.push(0x80 | (value & 0x7f));
  return Buffer.from([...out, value]);
}

/** The status in a response's header block, which it begins with; 0: it cannot be read. */
export function readStatus(block: Buffer): number {
  let at = 0;
  // A change of the table's size comes before everything.
  while (at < block.length && (block[at]! & 0xe0) === 0x20) {
    if ((block[at++]! & 0x1f) === 0x1f) while (at < block.length && block[at++]! >= 0x80);
  }
  const first = block[at++] ?? 0;
  if (first >= 0x80) {
    const index = first & 0x7f;
    return index >= STATIC.STATUS && index <= STATIC.STATUS_LAST
      ? STATUSES[index - STATIC.STATUS]!
      : 0;
  }
  const index = (first & 0xc0) === 0x40 ? first & 0x3f : first & 0x0f;
  if (index < STATIC.STATUS || index > STATIC.STATUS_LAST) return 0;
  const head = block[at++] ?? 0;
  const text = block.subarray(at, at + (head & 0x7f));
  return head < 0x80 ? digits(text.toString('latin1')) : digits(huffmanDigits(text));
}

function digits(text: string): number {
  return /^[1-5]\d\d$/.test(text) ? Number(text) : 0;
}

/** Three digits in the code of RFC 7541 appendix B: 0 to 2 have five bits, 3 to 9 six. */
function huffmanDigits(bytes: Buffer): string {
  let bits = '';
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0');
  let text = '';
  for (let at = 0; text.length < 3;) {
    const five = Number.parseInt(bits.slice(at, at + 5), 2);
    if (five <= 2) {
      text += five;
      at += 5;
      continue;
    }
    const six = Number.parseInt(bits.slice(at, at + 6), 2);
    if (!(six >= 0b011001 && six <= 0b011111)) return '';
    text += six - 0b011001 + 3;
    at += 6;
  }
  return text;
}
