/**
 * dnstap messages (dnstap.proto, proto2), which report a query or reply as a program saw it, with the time. Writer and
 * reader share one list of field numbers.
 */
import { copyBytes } from '../base/copy-bytes.ts';
import { MessageReader, WIRE } from '../base/protobuf.ts';
import { MESSAGE_MAX } from './iana.ts';
import type { Proto } from './query-message.ts';

/** The content type in Frame Streams. */
export const DNSTAP_CONTENT_TYPE = 'protobuf:dnstap.Dnstap';

/** Path and version of the stream served by the `console` directive. */
export const TAP_PATH = '/v1/exchanges';
export const TAP_STREAM = '1';
/** Used in `extra` of a message without a type, for the number of messages that the reader missed. */
export const LEFT_OUT = 'ndots-left-out ';
/**
 * Used in `extra` after a reload, for the time when all workers served the new configuration, in milliseconds since
 * 1970. It is preceded by the time when the first of them may have served it. Replies in between can come from either
 * configuration.
 */
export const RELOADING = 'ndots-reloading ';
export const RELOADED = 'ndots-reloaded ';
/**
 * Used in `extra` at the start of the stream, and before `RELOADED`, for the configuration being served. It is a JSON
 * array of `{"file", "text"}` that starts with the Corefile. It is empty if the texts are too large.
 */
export const CONFIGURATION = 'ndots-configuration ';

/**
 * Maximum size of all files together in such a message, in characters. A ConfigMap is limited to 1 MiB, and a Corefile
 * is a few KiB.
 */
export const CONFIGURATION_MAX: number = 128 * 1024;

/** One of a configuration's files in such a message. */
export interface ConfigurationFile {
  readonly file: string;
  readonly text: string;
}

/** Message types (`Message.Type`), which show what program saw the query or reply, and where. */
export const TAP = {
  AUTH_QUERY: 1,
  AUTH_RESPONSE: 2,
  RESOLVER_QUERY: 3,
  RESOLVER_RESPONSE: 4,
  CLIENT_QUERY: 5,
  CLIENT_RESPONSE: 6,
  FORWARDER_QUERY: 7,
  FORWARDER_RESPONSE: 8,
  STUB_QUERY: 9,
  STUB_RESPONSE: 10,
  TOOL_QUERY: 11,
  TOOL_RESPONSE: 12,
  UPDATE_QUERY: 13,
  UPDATE_RESPONSE: 14,
} as const;

/** `SocketFamily`. */
const FAMILY = { v4: 1, v6: 2 } as const;

/** `SocketProtocol`. */
const PROTOCOL: Readonly<Record<Proto, number>> = {
  udp: 1,
  internal: 1,
  tcp: 2,
  grpc: 2,
  tls: 3,
  https: 4,
};

const protocolNames: readonly (string | undefined)[] = [undefined, 'udp', 'tcp', 'tls', 'https'];

/** Fields of the outer message, `Dnstap`. */
const OUTER = { identity: 1, version: 2, extra: 3, message: 14, type: 15 } as const;

/** Fields of `Message`. */
const FIELD = {
  type: 1,
  family: 2,
  protocol: 3,
  queryAddress: 4,
  responseAddress: 5,
  queryPort: 6,
  responsePort: 7,
  querySeconds: 8,
  queryNanoseconds: 9,
  queryMessage: 10,
  queryZone: 11,
  responseSeconds: 12,
  responseNanoseconds: 13,
  responseMessage: 14,
} as const;

const tag = (field: number, wire: number): number => (field << 3) | wire;

/**
 * Returns the bytes before the message, with identity and version, which are the same for all of a writer's messages.
 * Empty ones are omitted.
 */
export function dnstapPrefix(identity: string, version: string): Uint8Array {
  return Buffer.concat([textField(OUTER.identity, identity), textField(OUTER.version, version)]);
}

/** Returns a frame with a message that has no type, but only this text in `extra`. The text may have any length. */
export function noteFrame(extra: string): Uint8Array {
  const body = Buffer.concat([
    textField(OUTER.extra, extra),
    Uint8Array.of(tag(OUTER.type, WIRE.varint), 1),
  ]);
  const frame = Buffer.alloc(4 + body.length);
  frame.writeUInt32BE(body.length);
  frame.set(body, 4);
  return frame;
}

function textField(field: number, text: string): Uint8Array {
  const bytes = Buffer.from(text);
  if (bytes.length === 0) return bytes;
  const head = new Uint8Array(6);
  head[0] = tag(field, WIRE.bytes);
  return Buffer.concat([head.subarray(0, putVarint(head, 1, bytes.length)), bytes]);
}

/** An IP address and port, given as bytes in a buffer. */
export interface TapPeer {
  readonly family: 4 | 6;
  readonly peer: Uint8Array;
  readonly peerAt: number;
  readonly peerPort: number;
}

/** Upper bound in bytes for all fields other than addresses, texts and messages. */
const ROOM = 256;

/**
 * Writes one dnstap message at a time into its own buffer. Call `begin`, then the fields in the order in which their
 * methods are listed, then `end`. Writing allocates nothing.
 */
export class DnstapWriter {
  /** After `end`, the message is `bytes[start, end)` until `begin` is called again. */
  readonly bytes: Uint8Array;
  start = 0;
  /** Position of the next field in the inner message. */
  at = 0;
  readonly #prefix: Uint8Array;
  readonly #most: number;
  #body = 0;
  #extra: Uint8Array = nothing;

  /**
   * @param prefix the result of `dnstapPrefix`
   * @param room bytes that a DNS message may need beyond its own size (`STAMP_ROOM`)
   */
  constructor(prefix: Uint8Array, room: number) {
    this.#prefix = prefix;
    this.#most = prefix.length + EXTRA_MAX + ROOM;
    this.bytes = new Uint8Array(this.#most + MESSAGE_MAX + room + ROOM);
  }

  /** @param extra the outer message's field with that name, cut off at 4 KiB */
  begin(type: number, extra: string): void {
    const text = extra === '' ? nothing : Buffer.from(extra);
    this.#extra = text.length > EXTRA_MAX ? text.subarray(0, EXTRA_MAX) : text;
    this.#body = this.#most;
    this.at = this.#body;
    this.#field(FIELD.type, WIRE.varint);
    this.#varint(type);
  }

  /**
   * Writes the socket's address family and transport, followed by the address of the client (`query`), the server, or
   * both.
   */
  socket(family: 4 | 6, proto: Proto, from: TapPeer | null, to: TapPeer | null): void {
    this.#field(FIELD.family, WIRE.varint);
    this.#varint(family === 4 ? FAMILY.v4 : FAMILY.v6);
    this.#field(FIELD.protocol, WIRE.varint);
    this.#varint(PROTOCOL[proto]);
    if (from !== null) this.#address(FIELD.queryAddress, from);
    if (to !== null) this.#address(FIELD.responseAddress, to);
    if (from !== null) this.#number(FIELD.queryPort, from.peerPort);
    if (to !== null) this.#number(FIELD.responsePort, to.peerPort);
  }

  /**
   * Writes the time of the query.
   * @param ms milliseconds since 1970, with fractions
   */
  queryTime(ms: number): void {
    this.#time(FIELD.querySeconds, FIELD.queryNanoseconds, ms);
  }

  queryMessage(bytes: Uint8Array, start: number, end: number): void {
    this.#message(FIELD.queryMessage, end - start);
    copyBytes(bytes, start, this.bytes, this.at, end - start);
    this.at += end - start;
  }

  /**
   * Writes the time of the reply.
   * @param ms milliseconds since 1970, with fractions
   */
  responseTime(ms: number): void {
    this.#time(FIELD.responseSeconds, FIELD.responseNanoseconds, ms);
  }

  /** @param id replaces the message's id, for a reply to a query that was sent with a different one */
  responseMessage(bytes: Uint8Array, start: number, end: number, id: number | null = null): void {
    this.#message(FIELD.responseMessage, end - start);
    copyBytes(bytes, start, this.bytes, this.at, end - start);
    if (id !== null) {
      this.bytes[this.at] = id >> 8;
      this.bytes[this.at + 1] = id & 0xff;
    }
    this.at += end - start;
  }

  /**
   * Lets `write` put the reply's bytes directly into this message's buffer.
   * @param write writes at `at` in `out` and returns the length
   */
  responseBy(write: (out: Uint8Array, at: number) => number): void {
    // The length comes first, but is not known yet. Three bytes are enough for any length, because a varint may be
    // longer than necessary.
    const head = this.at;
    const length = write(this.bytes, head + 4);
    this.bytes[head] = tag(FIELD.responseMessage, WIRE.bytes);
    const size = sizeOfVarint(length);
    putVarint(this.bytes, head + 1, length);
    if (size < 3) this.bytes.copyWithin(head + 1 + size, head + 4, head + 4 + length);
    this.at = head + 1 + size + length;
  }

  /** Ends the message as a Frame Streams frame, which is its length followed by the message. */
  endFrame(): void {
    const { bytes } = this;
    const prefix = this.#prefix;
    const extra = this.#extra;
    const inner = this.at - this.#body;
    bytes[this.at++] = tag(OUTER.type, WIRE.varint);
    bytes[this.at++] = 1;
    let head = this.#body - 1 - sizeOfVarint(inner);
    bytes[head] = tag(OUTER.message, WIRE.bytes);
    putVarint(bytes, head + 1, inner);
    if (extra.length > 0) {
      head -= extra.length;
      copyBytes(extra, 0, bytes, head, extra.length);
      head -= 1 + sizeOfVarint(extra.length);
      bytes[head] = tag(OUTER.extra, WIRE.bytes);
      putVarint(bytes, head + 1, extra.length);
    }
    head -= prefix.length;
    copyBytes(prefix, 0, bytes, head, prefix.length);
    const length = this.at - head;
    this.start = head - 4;
    bytes[this.start] = length >>> 24;
    bytes[this.start + 1] = (length >>> 16) & 0xff;
    bytes[this.start + 2] = (length >>> 8) & 0xff;
    bytes[this.start + 3] = length & 0xff;
  }

  #field(field: number, wire: number): void {
    this.bytes[this.at++] = tag(field, wire);
  }

  #varint(value: number): void {
    this.at = putVarint(this.bytes, this.at, value);
  }

  #number(field: number, value: number): void {
    this.#field(field, WIRE.varint);
    this.#varint(value);
  }

  #address(field: number, { peer, peerAt, family }: TapPeer): void {
    const size = family === 4 ? 4 : 16;
    this.#field(field, WIRE.bytes);
    this.bytes[this.at++] = size;
    copyBytes(peer, peerAt, this.bytes, this.at, size);
    this.at += size;
  }

  #time(seconds: number, nanoseconds: number, ms: number): void {
    const whole = Math.floor(ms / 1000);
    const rest = Math.floor((ms - whole * 1000) * 1e6);
    this.#number(seconds, whole);
    this.#field(nanoseconds, WIRE.fixed32);
    this.bytes[this.at++] = rest & 0xff;
    this.bytes[this.at++] = (rest >>> 8) & 0xff;
    this.bytes[this.at++] = (rest >>> 16) & 0xff;
    this.bytes[this.at++] = rest >>> 24;
  }

  #message(field: number, length: number): void {
    this.#field(field, WIRE.bytes);
    this.#varint(length);
  }
}

const nothing = new Uint8Array(0);
/** Maximum size in bytes of each message's `extra`, which is an expanded template from a Corefile. */
const EXTRA_MAX = 4096;

function sizeOfVarint(value: number): number {
  let size = 1;
  for (; value >= 0x80; value = Math.floor(value / 128)) size++;
  return size;
}

/** @returns the position after it */
function putVarint(bytes: Uint8Array, at: number, value: number): number {
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes[at++] = (value % 128) | 0x80;
  bytes[at++] = value;
  return at;
}

/** A dnstap message as an object. Absent fields are null. */
export interface Dnstap {
  readonly identity: string | null;
  readonly version: string | null;
  readonly extra: string | null;
  /** One of `TAP`. */
  readonly type: number;
  readonly family: 4 | 6 | null;
  readonly protocol: string | null;
  /** 4 or 16 bytes. */
  readonly queryAddress: Uint8Array | null;
  readonly responseAddress: Uint8Array | null;
  readonly queryPort: number | null;
  readonly responsePort: number | null;
  /** Milliseconds since 1970, with fractions. */
  readonly queryMs: number | null;
  readonly responseMs: number | null;
  readonly queryMessage: Uint8Array | null;
  readonly responseMessage: Uint8Array | null;
  /** Wire form. */
  readonly queryZone: Uint8Array | null;
}

/**
 * Reads one dnstap message. Unknown fields are skipped.
 * @throws MessageError
 * @public
 */
export function readDnstap(bytes: Uint8Array): Dnstap {
  const reader = new MessageReader();
  const texts: (string | null)[] = [null, null, null, null];
  const whole = asBuffer(bytes);
  let start = 0;
  let end = 0;
  for (reader.over(whole); reader.next();) {
    if (reader.kind !== WIRE.bytes) continue;
    if (reader.field === OUTER.message) ({ start, end } = reader);
    else if (reader.field <= OUTER.extra) texts[reader.field] = reader.text();
  }
  const numbers: (number | undefined)[] = [];
  const parts: (Uint8Array | undefined)[] = [];
  for (reader.over(whole, start, end); reader.next();) {
    if (reader.field > FIELD.responseMessage) continue;
    if (reader.kind === WIRE.bytes) parts[reader.field] = bytes.subarray(reader.start, reader.end);
    else numbers[reader.field] = reader.number();
  }
  const family = numbers[FIELD.family];
  const time = (seconds: number, nanoseconds: number): number | null => {
    const whole = numbers[seconds];
    return whole === undefined ? null : whole * 1000 + (numbers[nanoseconds] ?? 0) / 1e6;
  };
  return {
    identity: texts[OUTER.identity] ?? null,
    version: texts[OUTER.version] ?? null,
    extra: texts[OUTER.extra] ?? null,
    type: numbers[FIELD.type] ?? 0,
    family: family === FAMILY.v4 ? 4 : family === FAMILY.v6 ? 6 : null,
    protocol: protocolNames[numbers[FIELD.protocol] ?? 0] ?? null,
    queryAddress: parts[FIELD.queryAddress] ?? null,
    responseAddress: parts[FIELD.responseAddress] ?? null,
    queryPort: numbers[FIELD.queryPort] ?? null,
    responsePort: numbers[FIELD.responsePort] ?? null,
    queryMs: time(FIELD.querySeconds, FIELD.queryNanoseconds),
    responseMs: time(FIELD.responseSeconds, FIELD.responseNanoseconds),
    queryMessage: parts[FIELD.queryMessage] ?? null,
    responseMessage: parts[FIELD.responseMessage] ?? null,
    queryZone: parts[FIELD.queryZone] ?? null,
  };
}

function asBuffer({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
