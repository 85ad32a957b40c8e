import { TYPE } from './iana.ts';
import { Reader } from './reader.ts';
import { SECTION, type MessageWriter } from './writer.ts';

/**
 * The content of a message's OPT record (RFC 6891), except for the result code's upper eight bits, which are in
 * `rcode`.
 */
export interface Edns {
  /** The largest datagram that the sender accepts. */
  readonly udpSize: number;
  readonly version: number;
  readonly dnssecOk: boolean;
  /** The 15 flag bits after DO. Absent if all are zero. */
  readonly z?: number;
  readonly options: readonly EdnsOption[];
}

/** A single option as bytes; `edns-option.ts` parses it. */
export interface EdnsOption {
  readonly code: number;
  readonly data: Uint8Array;
}

/**
 * Reads the OPT record at the reader's position, including its owner.
 * @throws ReadError
 */
export function readEdns(from: Reader): Edns {
  from.at += 3;
  const udpSize = from.u16();
  from.u8();
  const version = from.u8();
  const flags = from.u16();
  const length = from.u16();
  if (length > from.left) from.fail('the data of OPT runs past the end of the message');
  const outer = from.end;
  from.end = from.at + length;
  const options = readOptions(from);
  from.end = outer;
  const z = flags & 0x7fff;
  return { udpSize, version, dnssecOk: (flags & 0x8000) !== 0, ...(z === 0 ? {} : { z }), options };
}

/**
 * Reads options up to the reader's end.
 * @throws ReadError
 */
function readOptions(from: Reader): EdnsOption[] {
  const options: EdnsOption[] = [];
  while (from.left > 0) {
    const code = from.u16();
    const length = from.u16();
    if (length > from.left) from.fail('an EDNS option runs past the end of OPT');
    options.push({ code, data: from.bytes(length) });
  }
  return options;
}

/**
 * Returns the options in `bytes[at, end)`, with copies of their data. The bytes must consist of complete options, as in
 * a parsed query or reply.
 */
export function optionsIn(bytes: Uint8Array, at: number, end: number): EdnsOption[] {
  return readOptions(new Reader(bytes, at, end));
}

export function optionBytes(options: readonly EdnsOption[]): Uint8Array {
  const bytes = new Uint8Array(options.reduce((sum, { data }) => sum + 4 + data.length, 0));
  let at = 0;
  for (const { code, data } of options) {
    bytes[at] = code >> 8;
    bytes[at + 1] = code & 0xff;
    bytes[at + 2] = data.length >> 8;
    bytes[at + 3] = data.length & 0xff;
    bytes.set(data, at + 4);
    at += 4 + data.length;
  }
  return bytes;
}

/**
 * Writes OPT as the next record.
 * @param rcode the message's result code, the upper eight bits of which are stored here
 */
export function writeEdns(to: MessageWriter, edns: Edns, rcode: number): void {
  const flags = (edns.dnssecOk ? 0x8000 : 0) | (edns.z ?? 0);
  const ttl = ((rcode >> 4) << 24) | (edns.version << 16) | flags;
  to.open(SECTION.additional, root, TYPE.OPT, ttl, edns.udpSize);
  writeOptions(to, edns.options);
  to.close();
}

function writeOptions(to: MessageWriter, options: readonly EdnsOption[]): void {
  for (const { code, data } of options) {
    to.u16(code);
    to.u16(data.length);
    to.bytes(data);
  }
}

const root = Uint8Array.of(0);
