/** Reads captures, dnstap streams and logs, turning bytes into exchanges and lookups. */
import { CopiedBytes } from '../pair/copied-bytes.ts';
import { LookupGrouping } from '../pair/lookups.ts';
import { Pairing, type PairingCounts } from '../pair/pairing.ts';
import type { SeenExchange, SeenLookup } from '../pair/seen-exchange.ts';
import type { Format, Input } from './recognised-input.ts';
import {
  Dissector,
  type CaptureEvents,
  type DissectCounts,
  type PassingMessage,
  type PathEvent,
} from './packets/dissect.ts';
import type { CaptureReader, Frame } from './packets/frame.ts';
import { PcapReader } from './packets/pcap.ts';
import { PcapngReader } from './packets/pcapng.ts';
import { INTERFACES_MAX } from './packets/link-layer.ts';
import { Remarks } from './packets/remarks.ts';
import { DnstapReader } from './records/dnstap-messages.ts';
import type { LogLine } from './records/log-line.ts';
import { QueryLogReader, type LoggedFailure } from './records/query-log.ts';
import { SearchDomains } from '../pair/search-walk.ts';
import { BACK_MS, CaptureOrder, ownFrame, TURN_MS } from './packet-order.ts';
import { isTime, SteadyTime } from './steady-time.ts';

/** Name server ports, which are 53, and 5353 for OpenShift's DNS pods (we can tell Multicast DNS apart). */
export const usualPorts: readonly number[] = [53, 5353];

/** Callbacks while reading, all optional. */
export interface ReadingEvents {
  begun?(exchange: SeenExchange): void;
  ended?(exchange: SeenExchange): void;
  /** Another reply to a query that has been answered. Its bytes are reused. */
  again?(exchange: SeenExchange, reply: Uint8Array, timeMs: number): void;
  lookup?(lookup: SeenLookup): void;
  path?(event: PathEvent): void;
  neighbour?: CaptureEvents['neighbour'];
  part?: CaptureEvents['part'];
  message?(message: PassingMessage): void;
  /** A packet, after it was read. */
  frame?(frame: Frame): void;
  failure?(failure: LoggedFailure): void;
  /** A line of text that is neither a query nor a failure. */
  line?(line: LogLine, number: number): void;
  /** A line in a text that is not a log but, for example, a list of names. */
  entry?(line: string, number: number): void;
}

export interface ReadingTotals extends DissectCounts, PairingCounts {
  exchanges: number;
  lookups: number;
  lost: number;
  /** Of the exchanges, those that had no reply when the capture ended. */
  unfinished: number;
  firstMs: number;
  lastMs: number;
}

export interface ReadingBounds {
  /** Packets outside this range are skipped; milliseconds since 1970. */
  readonly fromMs?: number;
  readonly toMs?: number;
  /** Learned here, or by an earlier reading. */
  readonly domains?: SearchDomains;
  /** Converts the time of a dnstap message, live packet or line from the clock of its host. */
  readonly clock?: (timeMs: number) => number;
}

/** Reads inputs one after another. `end` closes anything that is still open. */
export class Reading {
  readonly remarks: Remarks = new Remarks();
  readonly domains: SearchDomains;
  readonly #events: ReadingEvents;
  readonly #dissector: Dissector;
  readonly #pairing: Pairing;
  readonly #grouping: LookupGrouping;
  readonly #fromMs: number;
  readonly #toMs: number;
  readonly #clock: (timeMs: number) => number;
  readonly #copies = new CopiedBytes();
  readonly #steadyFrames = new SteadyTime<Frame>(
    (frame) => this.#frame(frame),
    (frame) => ownFrame(frame, this.#copies),
    ({ number }) => this.remarks.add(strangeTime('packet'), `frame ${number}`),
  );
  readonly #order = new CaptureOrder((frame) => this.#steadyFrames.take(frame));
  readonly #steadyMessages = new SteadyTime<PassingMessage>(
    (message) => {
      if (this.#isWanted(message.timeMs)) this.takeMessage(message);
    },
    // dnstap messages are already copies.
    (message) => message,
    (message) => this.#passOver(message),
  );
  #lookups = 0;
  #exchanges = 0;
  #unfinished = 0;
  #lost = 0;
  #firstMs = Infinity;
  #lastMs = -Infinity;
  #nowMs = -Infinity;
  /**
   * In milliseconds. Times that go further back belong to another capture, rather than another file from the same one.
   */
  #backMs = BACK_MS;

  constructor(
    events: ReadingEvents,
    ports: readonly number[] = usualPorts,
    {
      fromMs = -Infinity,
      toMs = Infinity,
      domains = new SearchDomains(),
      clock = (timeMs) => timeMs,
    }: ReadingBounds = {},
  ) {
    this.#events = events;
    this.#fromMs = fromMs;
    this.#toMs = toMs;
    this.#clock = clock;
    this.domains = domains;
    this.#grouping = new LookupGrouping((lookup) => {
      this.#lookups++;
      events.lookup?.(lookup);
    }, this.domains);
    this.#pairing = new Pairing(
      {
        begun: (exchange) => this.#begun(exchange),
        ended: (exchange) => this.#ended(exchange),
        again: (exchange, reply, timeMs) => events.again?.(exchange, reply, timeMs),
      },
      this.remarks,
    );
    const handlers: CaptureEvents = {
      message: (message) => {
        events.message?.(message);
        this.#pairing.take(message);
      },
      elsewhere: (message) => this.#pairing.takeElsewhere(message),
      ...(events.path === undefined ? {} : { path: (event) => events.path!(event) }),
      ...(events.neighbour === undefined ? {} : { neighbour: events.neighbour }),
      ...(events.part === undefined ? {} : { part: events.part }),
    };
    this.#dissector = new Dissector(handlers, this.remarks, new Set(ports));
  }

  /** Reads an input until it ends or `stopped` returns true. */
  async read(input: Input, stopped: () => boolean = () => false): Promise<void> {
    this.#backMs = TURN_MS;
    const reader = this.#readerOf(input.format);
    if (reader === null) {
      if (!stopped()) this.remarks.add(`${input.name} is empty`);
      return;
    }
    // A user watching a pipe should see the last packets even when nothing more arrives.
    let pause: NodeJS.Timeout | undefined;
    const failed: unknown[] = [];
    const catchUp = (): void => {
      try {
        this.#order.pause();
      } catch (error) {
        // Timers have no caller to throw to, so `read` throws this.
        failed.push(error);
        input.close();
      }
    };
    try {
      for await (const chunk of input.chunks) {
        clearTimeout(pause);
        reader.push(chunk);
        if (reader.broken || stopped()) break;
        if (input.size === null) pause = setTimeout(catchUp, TURN_MS);
      }
    } finally {
      clearTimeout(pause);
    }
    if (failed.length > 0) throw failed[0];
    // If we stopped early, the input is not truncated.
    if (!stopped()) reader.end();
    this.#order.end();
    this.#steadyFrames.end();
    this.#steadyMessages.end();
  }

  /**
   * Reads several captures of the same packets in time order. Each one is an interface, so a packet that appears in
   * several of them counts once.
   */
  async readTogether(
    captures: readonly { readonly input: Input; readonly aheadMs: number }[],
    stopped: () => boolean = () => false,
  ): Promise<void> {
    this.#backMs = TURN_MS;
    const lanes = captures.map(
      ({ input, aheadMs }, at) => new Lane(input, aheadMs, at * INTERFACES_MAX, this.remarks),
    );
    while (!stopped()) {
      for (const lane of lanes) await lane.fill();
      const [first, ...others] = lanes.filter(({ headMs }) => headMs < Infinity);
      if (first === undefined) break;
      const next = others.reduce((one, other) => (other.headMs < one.headMs ? other : one), first);
      this.#steadyFrames.take(next.shift());
    }
    this.#steadyFrames.end();
  }

  /** Reads a separate input and closes it. */
  async readWhole(input: Input, stopped?: () => boolean): Promise<void> {
    try {
      await this.read(input, stopped);
    } finally {
      input.close();
    }
    this.end();
  }

  /** Takes live packets without link headers. */
  takeNetwork(bytes: Uint8Array, start: number, end: number, atMs: number, port: number): void {
    const timeMs = isTime(atMs) ? this.#clock(atMs) : NaN;
    if (!isTime(timeMs)) {
      this.remarks.add(strangeTime('packet'));
      return;
    }
    this.#time(timeMs);
    this.#dissector.takeNetwork(bytes, start, end, timeMs, port);
  }

  /** Takes dnstap messages, which have no packets. */
  takeMessage(given: PassingMessage): void {
    const timeMs = isTime(given.timeMs) ? this.#clock(given.timeMs) : NaN;
    const message = timeMs === given.timeMs ? given : { ...given, timeMs };
    if (!isTime(timeMs)) {
      this.#passOver(message);
      return;
    }
    this.#time(message.timeMs);
    this.#events.message?.(message);
    this.#pairing.take(message);
  }

  /**
   * Advances the clock when nothing arrives, in milliseconds since 1970, and times out anything that has waited too
   * long. Slightly older packets may still arrive.
   */
  advance(nowMs: number): void {
    this.#pairing.advance(nowMs);
    this.#grouping.advance(nowMs);
  }

  /** Called when the input has ended or the next one is unrelated. */
  end(): void {
    this.#dissector.end();
    this.#pairing.end();
    this.#grouping.end();
  }

  /** IP packets by family, excluding ICMPv6. */
  get families(): { readonly 4: number; readonly 6: number } {
    return this.#dissector.families;
  }

  get totals(): ReadingTotals {
    return {
      ...this.#dissector.counts,
      ...this.#pairing.counts,
      exchanges: this.#exchanges,
      lookups: this.#lookups,
      lost: this.#lost,
      unfinished: this.#unfinished,
      firstMs: this.#firstMs,
      lastMs: this.#lastMs,
    };
  }

  #readerOf(format: Format): CaptureReader | null {
    switch (format) {
      case 'pcap':
      case 'pcapng':
        return packetReader(format, this.#order, this.remarks);
      case 'dnstap':
        return new DnstapReader((message) => this.#steadyMessages.take(message), this.remarks);
      case 'text':
        return new QueryLogReader(
          {
            exchange: (logged) => {
              const exchange = this.#onClock(logged);
              this.#follow(exchange.sentMs);
              if (exchange.logged === 'with times') this.#span(exchange.sentMs);
              this.#begun(exchange);
              this.#ended(exchange);
            },
            failure: (failure) => this.#events.failure?.(failure),
            other: (line, number) => this.#events.line?.(line, number),
            entry: (line, number) => this.#events.entry?.(line, number),
          },
          this.remarks,
        );
      case 'empty':
        return null;
    }
  }

  #onClock(logged: SeenExchange): SeenExchange {
    const sentMs = this.#clock(logged.sentMs);
    if (sentMs === logged.sentMs) return logged;
    const tookMs = logged.repliedMs === null ? null : logged.repliedMs - logged.sentMs;
    return { ...logged, sentMs, repliedMs: tookMs === null ? null : sentMs + tookMs };
  }

  #frame(frame: Frame): void {
    if (!this.#isWanted(frame.timeMs)) return;
    this.#time(frame.timeMs);
    this.#dissector.take(frame);
    this.#events.frame?.(frame);
  }

  #isWanted(ms: number): boolean {
    return !(ms < this.#fromMs || ms > this.#toMs);
  }

  #passOver({ frame }: PassingMessage): void {
    this.remarks.add(strangeTime('message'), `message ${frame}`);
  }

  #begun(exchange: SeenExchange): void {
    this.#events.begun?.(exchange);
    if (exchange.name !== '') this.#grouping.begun(exchange);
  }

  #ended(exchange: SeenExchange): void {
    this.#exchanges++;
    if (exchange.ending === 'lost' || exchange.ending === 'retried') this.#lost++;
    if (exchange.ending === 'open') this.#unfinished++;
    // A lookup that ends with this exchange is reported after it.
    this.#events.ended?.(exchange);
    this.#grouping.ended(exchange);
  }

  #time(ms: number): void {
    this.#follow(ms);
    this.#span(ms);
  }

  #follow(ms: number): void {
    // This is another capture from the same time, or an appended one, so open exchanges will not continue.
    if (ms < this.#nowMs - this.#backMs) {
      this.end();
      this.#nowMs = ms;
    }
    this.#backMs = BACK_MS;
    if (ms > this.#nowMs) this.#nowMs = ms;
  }

  #span(ms: number): void {
    if (ms < this.#firstMs) this.#firstMs = ms;
    if (ms > this.#lastMs) this.#lastMs = ms;
  }
}

/** A capture that is read in parallel with others, staying one packet ahead. */
class Lane {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #reader: CaptureReader;
  readonly #order: CaptureOrder;
  #frames: Frame[] = [];
  #at = 0;
  #isOver = false;

  constructor({ chunks, format }: Input, aheadMs: number, port: number, remarks: Remarks) {
    const copies = new CopiedBytes();
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#order = new CaptureOrder((frame) => {
      const timeMs = frame.timeMs - aheadMs;
      this.#frames.push({ ...ownFrame(frame, copies), timeMs, port: port + frame.port });
    });
    this.#reader = packetReader(format, this.#order, remarks);
  }

  /** The time of the next packet, or Infinity if there is none. */
  get headMs(): number {
    return this.#frames[this.#at]?.timeMs ?? Infinity;
  }

  shift(): Frame {
    return this.#frames[this.#at++]!;
  }

  /** Reads until the next packet is known. */
  async fill(): Promise<void> {
    while (!this.#isOver && this.#at >= this.#frames.length) {
      this.#frames = [];
      this.#at = 0;
      const { done, value } = await this.#chunks.next();
      if (done !== true) this.#reader.push(value);
      if (done !== true && !this.#reader.broken) continue;
      this.#isOver = true;
      this.#reader.end();
      this.#order.end();
    }
  }
}

function packetReader(format: Format, order: CaptureOrder, remarks: Remarks): CaptureReader {
  if (format !== 'pcapng') return new PcapReader((frame) => order.take(frame, 1), remarks);
  const reader: PcapngReader = new PcapngReader(
    (frame) => order.take(frame, reader.interfaces),
    remarks,
  );
  return reader;
}

function strangeTime(what: string): string {
  return `the time of a ${what} is far from those around it, so it was ignored`;
}
