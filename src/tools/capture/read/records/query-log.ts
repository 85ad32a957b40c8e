/**
 * Parses query logs from CoreDNS and ndots (plugin log, formats common and combined) and from Unbound (log-replies).
 * Lines may have prefixes from `kubectl logs --timestamps`, a container runtime or a log collector.
 */
import { parseDuration } from '../../../../server/base/duration.ts';
import { FLAG, RCODE, rcodeNumber, typeNumber } from '../../../../server/wire/iana.ts';
import { NameError } from '../../../../server/wire/name.ts';
import type { SeenExchange } from '../../pair/seen-exchange.ts';
import type { Remarks } from '../packets/remarks.ts';
import { hasControls } from '../../../../server/base/binary-text.ts';
import { logLine, type LogLine } from './log-line.ts';
import { madeExchange, type LoggedExchange } from './made-exchange.ts';
import { unboundLine } from './unbound-line.ts';

/** An upstream failure, from a line written by plugin errors. */
export interface LoggedFailure {
  readonly name: string;
  readonly type: string;
  /** The upstream's address and port. Empty if the line does not have them. */
  readonly upstream: string;
  readonly text: string;
  /** Milliseconds since 1970, or null if the log has no times. */
  readonly timeMs: number | null;
  /** The pod that wrote the line, or empty if unknown. */
  readonly pod: string;
}

export interface LogEvents {
  exchange(exchange: SeenExchange): void;
  failure(failure: LoggedFailure): void;
  /** Any other line, without collectors' additions. */
  other(line: LogLine, number: number): void;
  /** A line in a text that is not a log but, for example, a list of names. */
  entry(line: string, number: number): void;
}

/** The part after the client and ` - `. */
const QUERY =
  /^(\d{1,5}) "(\S+) \S+ (\S+) (udp|tcp) (\d{1,6}) (?:true|false) (\d{1,6})" (\S+) (\S+) \d+ ([\d.]{1,20}[nuµm]?s)/;
/** An address, with a zone if it is a link-local one. No other text may reach a terminal as an address. */
const CLIENT = /^\[?([\da-f.:]{2,45}(?:%[\w.-]{1,15})?)\]?:(\d{1,5})$/i;
/** A summary such as `12 errors like '…' occurred in last 30s`. */
const CONSOLIDATED = /plugin\/errors: \d{1,12} errors like '/;
const FAILURE = /plugin\/errors: (?:\d+ )?(\S+) (\S+): (.+)$/;
const UPSTREAM =
  /(?:->|\bdial \w{1,8} |https:\/\/)(\[[^\]\s]{1,60}\]:\d{1,5}|[^\s>"/[\]]{1,80}?:\d{1,5})(?![\d.])/;
/** The prefix of lines from plugin slowlog, which log a query a second time. */
const SLOW = 'plugin/slowlog:';
/** Lines that servers write but that are never in a list of names, with the version at startup or a level. */
const SAID =
  /(?:^| )(?:(?:CoreDNS|ndots)-\d{1,4}\.\d{1,4}\.\d{1,4}(?:[-+][\w.+-]{1,60})?$|\[(?:DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\] )/;
/** The number of lines are read before a text counts as a list. Servers log their listeners first. */
const UNDECIDED_MAX = 256;
/** Anything longer than this is not from a query log. */
const LINE_MAX = 8192;
/** Reading stops after this many bytes of overlong or binary lines. */
const NOISE_MAX = 16 * 1024 * 1024;

const flagBits: Readonly<Record<string, number>> = {
  qr: FLAG.QR,
  aa: FLAG.AA,
  tc: FLAG.TC,
  rd: FLAG.RD,
  ra: FLAG.RA,
  ad: FLAG.AD,
  cd: FLAG.CD,
};

export const noTimesRemark =
  'the log has no timestamps, so rates and durations are unknown (kubectl logs --timestamps)';

export class QueryLogReader {
  readonly #events: LogEvents;
  readonly #remarks: Remarks;
  #rest = '';
  #line = 0;
  #lastMs = 0;
  #timed = false;
  #noise = 0;
  #isLog = false;
  #unboundQueries = 0;
  #unboundReplies = 0;
  /** Lines read before the kind of text is known. Null once it is. */
  #undecided: { readonly line: string; readonly number: number }[] | null = [];

  constructor(events: LogEvents, remarks: Remarks) {
    this.#events = events;
    this.#remarks = remarks;
  }

  /** True if so much of the text was unreadable that the rest is ignored. */
  get broken(): boolean {
    return this.#noise > NOISE_MAX;
  }

  push(bytes: Uint8Array): void {
    if (this.broken) return;
    const text = this.#rest + Buffer.from(bytes).toString('latin1');
    let at = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', at)) {
      this.#take(text.slice(at, end));
      at = end + 1;
    }
    this.#rest = text.slice(at);
    if (this.#rest.length <= LINE_MAX) return;
    this.#remarks.add('a line is too long for a log', `line ${this.#line + 1}`);
    this.#takeNoise(this.#rest.length - LINE_MAX);
    this.#rest = this.#rest.slice(0, LINE_MAX);
  }

  end(): void {
    if (this.#rest !== '') this.#take(this.#rest);
    this.#rest = '';
    this.#decide();
    if (this.#unboundQueries > 0 && this.#unboundReplies === 0)
      this.#remarks.add('Unbound logs only queries (to log replies: log-replies: yes)');
  }

  #take(raw: string): void {
    this.#line++;
    if (raw.length > LINE_MAX) return this.#takeNoise(raw.length);
    const whole = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const line = logLine(whole);
    const { text: said, timeMs, pod } = line;
    if (this.#query(said, timeMs) || this.#unbound(line)) return this.#takeAsLog();
    const failure = CONSOLIDATED.test(said) ? null : FAILURE.exec(said);
    if (failure === null) {
      if (hasControls(whole)) this.#takeNoise(whole.length);
      if (whole !== '') this.#other(line, whole);
      return;
    }
    this.#takeAsLog();
    const [, name = '', type = '', text = ''] = failure;
    const upstream = UPSTREAM.exec(text)?.[1] ?? '';
    this.#events.failure({ name, type, upstream, text, timeMs, pod });
  }

  #other(read: LogLine, line: string): void {
    this.#events.other(read, this.#line);
    if (!line.startsWith('#') && SAID.test(read.text)) this.#takeAsLog();
    if (this.#isLog) return;
    if (this.#undecided === null) return this.#events.entry(line, this.#line);
    this.#undecided.push({ line, number: this.#line });
    if (this.#undecided.length === UNDECIDED_MAX) this.#decide();
  }

  /** The stored lines belong to a log too. */
  #takeAsLog(): void {
    this.#isLog = true;
    this.#undecided = null;
  }

  /** Nothing proved that the text is a log. */
  #decide(): void {
    const lines = this.#undecided ?? [];
    this.#undecided = null;
    for (const { line, number } of lines) this.#events.entry(line, number);
  }

  #takeNoise(size: number): void {
    const before = this.broken;
    this.#noise += size;
    if (this.broken && !before)
      this.#remarks.add(
        'more than 16 MiB is not text, so the rest was not read',
        `line ${this.#line + 1}`,
      );
  }

  /** @returns false if the line is not a query */
  #query(line: string, timeMs: number | null): boolean {
    const middle = line.indexOf(' - ');
    if (middle < 0) return false;
    const before = line.lastIndexOf(' ', middle - 1);
    // The query has a separate line, or `log` is off.
    if (line.slice(0, Math.max(0, before)).endsWith(SLOW)) return false;
    const who = CLIENT.exec(line.slice(before + 1, middle));
    const parts = QUERY.exec(line.slice(middle + 3));
    if (who === null || parts === null) return false;
    const [, address = '', port] = who;
    const [, id, type = '', name = '', protocol, , size, rcode = '', flags = '', took = ''] = parts;
    const tookMs = parseDuration(took) ?? 0;
    const number = typeNumber(type);
    if (number === null) {
      this.#remarks.add('a logged type is unknown', `line ${this.#line}`);
      return true;
    }
    this.#give(timeMs, tookMs, {
      client: { address, port: Number(port) },
      protocol: protocol === 'tcp' ? 'tcp' : 'udp',
      id: Number(id) & 0xffff,
      name,
      type: number,
      udpSize: Number(size),
      rcode: rcodeNumber(rcode) ?? RCODE.SERVFAIL,
      flags: flags.split(',').reduce((all, flag) => all | (flagBits[flag] ?? 0), 0),
    });
    return true;
  }

  /** @returns false if the line is not one of Unbound's query lines */
  #unbound({ text: said, timeMs, pod }: LogLine): boolean {
    const line = unboundLine(said);
    if (line === null) return false;
    if (!('kind' in line)) {
      const { name, type, text } = line;
      this.#events.failure({ name, type, upstream: '', text, timeMs, pod });
      return true;
    }
    const number = typeNumber(line.type);
    if (line.kind === 'query') this.#unboundQueries++;
    else if (number === null) this.#remarks.add('a logged type is unknown', `line ${this.#line}`);
    else {
      this.#unboundReplies++;
      this.#give(timeMs ?? line.timeMs, line.tookMs, {
        // The line contains neither the port nor the ID.
        client: { address: line.address, port: 0 },
        protocol: line.isTcp ? 'tcp' : 'udp',
        id: this.#line & 0xffff,
        name: line.name,
        type: number,
        udpSize: 512,
        rcode: rcodeNumber(line.rcode) ?? RCODE.SERVFAIL,
        flags: FLAG.RD | FLAG.RA,
      });
    }
    return true;
  }

  #give(
    timeMs: number | null,
    tookMs: number,
    parts: Omit<LoggedExchange, 'server' | 'class' | 'sentMs' | 'repliedMs' | 'logged' | 'line'>,
  ): void {
    const repliedMs = this.#time(timeMs, tookMs);
    let exchange: SeenExchange;
    try {
      exchange = madeExchange({
        ...parts,
        server: { address: '', port: 53 },
        class: 1,
        sentMs: repliedMs - tookMs,
        repliedMs,
        logged: timeMs === null ? 'without times' : 'with times',
        line: this.#line,
      });
    } catch (error) {
      if (!(error instanceof NameError)) throw error;
      this.#remarks.add('a logged name is not valid', `line ${this.#line}`);
      return;
    }
    // Stays outside `try`, because an exception thrown by the receiver is not a fault in the log.
    this.#events.exchange(exchange);
  }

  /** A line is written when the reply is sent. Without times, all we know is the order of lines. */
  #time(ms: number | null, tookMs: number): number {
    if (ms === null) {
      if (!this.#timed) this.#remarks.add(noTimesRemark);
      this.#timed = true;
      return (this.#lastMs += Math.max(tookMs, 0.001));
    }
    this.#timed = true;
    return (this.#lastMs = ms);
  }
}
