/** Converts dnstap messages into queries and replies, which are paired in the same way as those from packets. */
import { MessageError } from '../../../../server/base/protobuf.ts';
import { isLoopback } from '../../../../server/base/ip.ts';
import { oneLine } from '../../../../server/base/visible.ts';
import {
  accepts,
  CONTROL,
  FrameReader,
  type ControlFrame,
} from '../../../../server/wire/frame-stream.ts';
import {
  CONFIGURATION,
  CONFIGURATION_MAX,
  DNSTAP_CONTENT_TYPE,
  LEFT_OUT,
  readDnstap,
  RELOADED,
  RELOADING,
  TAP,
  type ConfigurationFile,
  type Dnstap,
} from '../../../../server/wire/dnstap.ts';
import { ReadError } from '../../../../server/wire/reader.ts';
import type { PassingMessage } from '../packets/dissect.ts';
import type { Remarks } from '../packets/remarks.ts';
import { queryOf } from './made-exchange.ts';

const FRAME_MAX = 1024 * 1024;
/** Maximum length of all file names in a configuration, in characters: 16 of the longest paths (PATH_MAX). */
const FILE_NAMES_MAX = 16 * 4096;
const KNOWN_MAX = 100_000;
const UNKNOWN = new Uint8Array(16);

export interface DnstapSender {
  /** 4 or 16 bytes. */
  readonly address: Uint8Array;
  /** Distinguishes servers that share an address (forwarded ports). */
  readonly port: number;
}

/** Reports by an ndots server about itself. */
export interface DnstapNotes {
  leftOut?(messages: number): void;
  /** The files that it serves or, before `reloaded`, has loaded. Null if they are too large or unreadable. */
  configuration?(files: readonly ConfigurationFile[] | null): void;
  /**
   * It is serving a new configuration.
   * @param fromMs since when replies may come from it, in milliseconds since 1970
   * @param toMs since when all replies come from it
   */
  reloaded?(fromMs: number, toMs: number): void;
}

/** Parses a Frame Streams file or socket. */
export class DnstapReader {
  readonly #frames = new FrameReader(FRAME_MAX);
  readonly #give: (message: PassingMessage) => void;
  readonly #remarks: Remarks;
  readonly #answer: (control: ControlFrame) => void;
  readonly #sender: DnstapSender | null;
  readonly #notes: DnstapNotes;
  readonly #asked = new Set<string>();
  #count = 0;
  #records = 0;
  #broken = false;
  /** Infinity: no reload is in progress. */
  #reloadingMs = Infinity;
  #started = false;
  #stopped = false;

  /**
   * @param give receives each query and reply
   * @param answer receives the control frames for the other end of a socket
   * @param sender the server that writes the messages, which do not identify it
   * @param notes receives an ndots server's reports about itself
   */
  constructor(
    give: (message: PassingMessage) => void,
    remarks: Remarks,
    answer: (control: ControlFrame) => void = () => undefined,
    sender: DnstapSender | null = null,
    notes: DnstapNotes = {},
  ) {
    this.#sender = sender;
    this.#notes = notes;
    this.#give = give;
    this.#remarks = remarks;
    this.#answer = answer;
  }

  push(bytes: Uint8Array): void {
    if (this.#broken) return;
    try {
      this.#frames.push(bytes);
      for (let frame = this.#frames.next(); frame !== null; frame = this.#frames.next()) {
        this.#records++;
        if (frame instanceof Uint8Array) this.#message(frame);
        else this.#control(frame);
        if (this.#broken) return;
      }
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      this.#broken = true;
      this.#remarks.add(
        'a frame is not dnstap, so the rest of the stream was not read',
        `message ${this.#count + 1}`,
      );
    }
  }

  /** True if the input is not dnstap, in which case nothing more is read. */
  get broken(): boolean {
    return this.#broken;
  }

  get records(): number {
    return this.#records;
  }

  end(): void {
    if (this.#started && !this.#stopped && !this.#broken)
      this.#remarks.add('the dnstap stream has no stop frame, so its end may be missing');
  }

  #control(control: ControlFrame): void {
    if (control.type === CONTROL.STOP) this.#stopped = true;
    if (control.type === CONTROL.START || control.type === CONTROL.READY) {
      this.#started = true;
      if (!accepts(control, DNSTAP_CONTENT_TYPE)) {
        this.#broken = true;
        this.#remarks.add(
          `a stream of ${oneLine(control.contentTypes.join(', ').slice(0, 60))}, not of dnstap`,
        );
        return;
      }
    }
    this.#answer(control);
  }

  #message(bytes: Uint8Array): void {
    this.#count++;
    let tap: Dnstap;
    try {
      tap = readDnstap(Uint8Array.from(bytes));
    } catch (error) {
      if (!(error instanceof MessageError)) throw error;
      this.#remarks.add('a dnstap message is damaged', `message ${this.#count}`);
      return;
    }
    if (tap.type === 0) {
      const { extra } = tap;
      const count = numberAfter(LEFT_OUT, extra);
      if (count !== null) this.#notes.leftOut?.(count);
      if (extra?.startsWith(CONFIGURATION) === true)
        this.#notes.configuration?.(configurationIn(extra.slice(CONFIGURATION.length)));
      this.#reloadingMs = numberAfter(RELOADING, extra) ?? this.#reloadingMs;
      const reloadedMs = numberAfter(RELOADED, extra);
      if (reloadedMs === null) return;
      this.#notes.reloaded?.(Math.min(this.#reloadingMs, reloadedMs), reloadedMs);
      this.#reloadingMs = Infinity;
      return;
    }
    if (this.#sender !== null) tap = withSender(tap, this.#sender);
    const key = `${Buffer.from(tap.queryAddress ?? UNKNOWN).toString('hex')} ${tap.queryPort} ${kindOf(tap.type)}`;
    const isQuery = tap.type % 2 === 1;
    if (isQuery) {
      if (tap.queryMessage === null) return;
      const id = idOf(tap.queryMessage);
      if (this.#asked.size >= KNOWN_MAX) this.#asked.clear();
      this.#asked.add(`${key} ${id}`);
      this.#pass(tap, tap.queryMessage, tap.queryMs ?? 0, false);
      return;
    }
    if (tap.responseMessage === null) return;
    const repliedMs = tap.responseMs ?? tap.queryMs ?? 0;
    // Many programs only report replies, along with the time of the query.
    if (!this.#asked.delete(`${key} ${idOf(tap.responseMessage)}`)) {
      const query = tap.queryMessage ?? queryOf(tap.responseMessage);
      if (query !== null) this.#pass(tap, query, tap.queryMs ?? repliedMs, false);
    }
    this.#pass(tap, tap.responseMessage, repliedMs, true);
  }

  #pass(tap: Dnstap, bytes: Uint8Array, timeMs: number, isReply: boolean): void {
    if (bytes.length < 12) return;
    const size = tap.family === 6 ? 16 : 4;
    const head = new Uint8Array(2 * size);
    const [first, second] = isReply
      ? [tap.responseAddress, tap.queryAddress]
      : [tap.queryAddress, tap.responseAddress];
    if (first?.length === size) head.set(first);
    if (second?.length === size) head.set(second, size);
    const client = tap.queryPort ?? 0;
    const server = tap.responsePort ?? 53;
    this.#give({
      timeMs,
      frame: this.#count,
      protocol: tap.protocol === 'udp' || tap.protocol === null ? 'udp' : 'tcp',
      bytes,
      start: 0,
      end: bytes.length,
      size: bytes.length,
      family: size === 4 ? 4 : 6,
      head,
      addressesAt: 0,
      sourcePort: isReply ? server : client,
      targetPort: isReply ? client : server,
      ttl: 0,
      // Each message has a different ID, so it is never a copy or a hop.
      ipId: (this.#count % 0xffff) + 1,
      port: 0,
      cut: false,
    });
  }
}

/** Parses the files in a configuration, or returns null if there are none. */
function configurationIn(text: string): readonly ConfigurationFile[] | null {
  let files: unknown;
  try {
    files = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(files) || files.length === 0) return null;
  let characters = 0;
  const isFile = (each: unknown): each is ConfigurationFile =>
    typeof each === 'object' &&
    each !== null &&
    typeof (each as ConfigurationFile).file === 'string' &&
    typeof (each as ConfigurationFile).text === 'string';
  if (!files.every(isFile)) return null;
  for (const { file, text: own } of files) characters += file.length + own.length;
  return characters <= CONFIGURATION_MAX + FILE_NAMES_MAX
    ? files.map(({ file, text: own }) => ({ file, text: own }))
    : null;
}

/** The whole number after a word, or null if there is none. */
function numberAfter(word: string, text: string | null): number | null {
  const number = Number(text?.startsWith(word) ? text.slice(word.length) : NaN);
  return Number.isSafeInteger(number) && number >= 0 ? number : null;
}

/**
 * The server is queried by clients, and queries upstreams itself. A message cannot claim that another server replied to
 * a client, or queried an upstream.
 */
function withSender(tap: Dnstap, { address, port }: DnstapSender): Dnstap {
  const own = tap.family === 6 && address.length === 4 ? mapped(address) : address;
  const fits = own.length === (tap.family === 6 ? 16 : 4);
  const kind = kindOf(tap.type);
  if (kind === TAP.CLIENT_RESPONSE)
    return {
      ...tap,
      responseAddress: fits ? own : null,
      ...(fits && isLoopback(address) && { responsePort: port }),
    };
  return kind === TAP.FORWARDER_RESPONSE ? { ...tap, queryAddress: fits ? own : null } : tap;
}

/** An IPv4-mapped IPv6 address (RFC 4291, section 2.5.5.2). */
function mapped(address: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(16);
  bytes.fill(0xff, 10, 12);
  bytes.set(address, 12);
  return bytes;
}

/** The message type of a query and its reply. Queries have odd numbers, and each reply has the next one. */
function kindOf(type: number): number {
  const kind = type + (type % 2);
  // BIND reports the query as a client's, but its reply as an authority's.
  return kind === TAP.AUTH_RESPONSE ? TAP.CLIENT_RESPONSE : kind;
}

function idOf(message: Uint8Array): number {
  return message.length < 2 ? -1 : (message[0]! << 8) | message[1]!;
}
