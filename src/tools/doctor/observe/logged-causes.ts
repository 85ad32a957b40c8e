/**
 * Failures that a server's log reports, by cause and upstream: the texts of CoreDNS, NodeLocal
 * DNSCache and ndots (Go's texts for errors of the network).
 */
import type { LoggedFailure } from '../../capture/read/records/query-log.ts';
import { BoundedMap } from './bounded-map.ts';

/** Why queries failed, or the server itself did. */
export type LoggedCause =
  | 'timeout'
  | 'refused'
  | 'unreachable'
  | 'forbidden-to-send'
  | 'unparsable'
  | 'crowded'
  | 'certificate'
  | 'handshake'
  | 'unhealthy'
  | 'closed'
  | 'descriptors'
  | 'other'
  | 'api-rights'
  | 'api-away'
  | 'unsynced'
  | 'bind'
  | 'panic'
  | 'configuration'
  | 'reload'
  | 'not-ready'
  | 'stalled'
  | 'node-rules'
  | 'stopped';

/** One cause, of one upstream where it is about one. */
export interface LoggedTrouble {
  readonly cause: LoggedCause;
  /** Address and port of the upstream, or another name for it; empty: the lines name none. */
  readonly upstream: string;
  count: number;
  /** Infinite where the lines have no times. */
  firstMs: number;
  lastMs: number;
  /** The first ones, of queries. */
  readonly names: Set<string>;
  readonly pods: Set<string>;
  readonly text: string;
}

/** The reasons of failed queries, by a part of their text. The first match counts. */
const ofQueries: readonly (readonly [LoggedCause, RegExp])[] = [
  ['crowded', /concurrent queries exceeded maximum/],
  ['certificate', /x509: |certificate (?:has expired|verify failed|required)|unknown certificate/],
  ['descriptors', /too many open files|cannot assign requested address|no buffer space available/],
  ['unhealthy', /no healthy (?:\w+ )?(?:proxies|upstreams)|no next plugin found/],
  ['forbidden-to-send', /operation not permitted|permission denied/],
  ['unreachable', /no route to host|(?:network|host) is (?:unreachable|down)/],
  ['refused', /connection refused/],
  ['timeout', /i\/o timeout|timed out|deadline exceeded|handshake timeout|did not answer/i],
  ['handshake', /\btls: |\bremote error: /],
  [
    'unparsable',
    /overflow(?:ing|ed)? |bad (?:rdata|header|label|name|pointer|rdlength|question)|unpack|short (?:buffer|read)|buffer size too small|insufficient data|malformed|header size/i,
  ],
  [
    'closed',
    /connection reset by peer|broken pipe|\bEOF\b|closed by peer|use of closed|connection (?:aborted|was closed)/,
  ],
];

const API =
  /plugin\/(?:kubernetes|k8s_external)|\breflector(?:\.go|=)|\bthe API server\b|client-go|\[?INFO\]? waiting for Kubernetes API/;
/** Lines of the server itself, by what they contain. */
const ofServer: readonly (readonly [LoggedCause, RegExp])[] = [
  ['panic', /^panic: |Recovered from panic|^fatal error: |\[PANIC\] |^runtime error: /],
  [
    'bind',
    /\b(?:bind|listen)\b.{0,120}(?:address already in use|permission denied|cannot assign)|address already in use/,
  ],
  [
    'reload',
    /Corefile changed but reload failed|Corefile parse failed|Restart failed: |plugin\/reload: .{0,80}(?:fail|error)/,
  ],
  [
    'configuration',
    /Error during parsing|Syntax error: |Unknown directive|there are no server blocks|Could not read Corefile|loading Caddyfile|cannot serve \S+ - /,
  ],
  [
    'stalled',
    /Local health request to .{1,300}(?:took more than|failed)|worker \d+ (?:hangs|ended unexpectedly|does not)/,
  ],
  [
    'node-rules',
    /(?:iptables|ebtables|nftables) rule|xtables lock|Failed to add non-existent interface|Error checking dummy device/,
  ],
  ['not-ready', /Plugins not ready: |Still waiting on: /],
  [
    'stopped',
    /SIG(?:TERM|INT|QUIT): Shutting down|plugin\/health: Going into lameduck mode|SHUTDOWN: Entering lameduck/,
  ],
];

const CONSOLIDATED = /(\d{1,12}) errors like '(.{1,400}?)' occurred in last/;
/** A level, or the line with which CoreDNS and ndots begin. */
const OF_LOG =
  /^\[(?:DEBUG|INFO|WARNING|ERROR|FATAL|PANIC)\] |^(?:CoreDNS|ndots)-\d+\.\d+|^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ /;

/** Causes and upstreams with counts of their own. */
export const LOGGED_MAX = 500;
/** Names and pods that each lists. */
const NAMES_MAX = 1000;
const PODS_MAX = 50;

/** Counts lines, in memory that does not grow with their number. */
export class LoggedCauses {
  readonly #troubles = new BoundedMap<string, LoggedTrouble>(LOGGED_MAX);
  /** Lines that a server wrote, whatever they say. */
  lines = 0;
  /** Of these, those that say that something went wrong. */
  errors = 0;

  get list(): readonly LoggedTrouble[] {
    return this.#troubles.list;
  }

  /** A query that failed, as plugin errors has it. */
  failure({ name, upstream, text, timeMs, pod }: LoggedFailure): void {
    this.lines++;
    const cause = causeIn(ofQueries, text) ?? 'other';
    const whom = cause === 'crowded' ? '' : upstream || namedBy(cause, text);
    this.#add(cause, whom, 1, { text, timeMs, pod, name });
  }

  /** @returns whether a server wrote the line */
  line(text: string, timeMs: number | null, pod: string): boolean {
    const isOfLog = OF_LOG.test(text);
    const many = CONSOLIDATED.exec(text);
    if (many !== null) {
      this.lines++;
      const [, count = '', pattern = ''] = many;
      const plain = pattern.replaceAll('\\', '');
      this.#add(causeIn(ofQueries, plain) ?? 'other', '', Number(count), {
        ...{ text: text.slice(many.index), timeMs, pod, name: '' },
      });
      return true;
    }
    const cause = ofApi(text) ?? causeIn(ofServer, text);
    // Other programs write such texts, too: without a level only those that CoreDNS writes so count.
    const isOwn = isOfLog || cause === 'panic' || cause === 'configuration' || cause === 'bind';
    if (cause !== null && isOwn) this.#add(cause, '', 1, { text, timeMs, pod, name: '' });
    if (!isOfLog && !(cause !== null && isOwn)) return false;
    this.lines++;
    return true;
  }

  get leftOut(): number {
    return this.#troubles.leftOut;
  }

  #add(
    cause: LoggedCause,
    upstream: string,
    count: number,
    { text, timeMs, pod, name }: Pick<LoggedFailure, 'text' | 'timeMs' | 'pod' | 'name'>,
  ): void {
    if (cause !== 'stopped' && cause !== 'not-ready') this.errors += count;
    const trouble = this.#troubles.at(`${cause} ${upstream}`, () => ({
      ...{ cause, upstream, count: 0, firstMs: Infinity, lastMs: -Infinity },
      ...{ names: new Set<string>(), pods: new Set<string>(), text: text.slice(0, 300) },
    }));
    if (trouble === null) return;
    trouble.count += count;
    if (timeMs !== null) {
      trouble.firstMs = Math.min(trouble.firstMs, timeMs);
      trouble.lastMs = Math.max(trouble.lastMs, timeMs);
    }
    if (name !== '' && trouble.names.size < NAMES_MAX) trouble.names.add(name);
    if (pod !== '' && trouble.pods.size < PODS_MAX) trouble.pods.add(pod);
  }
}

function causeIn(
  list: readonly (readonly [LoggedCause, RegExp])[],
  text: string,
): LoggedCause | null {
  return list.find(([, pattern]) => pattern.test(text))?.[0] ?? null;
}

/** Faults between the server and the API server. */
function ofApi(text: string): LoggedCause | null {
  if (!API.test(text) && !/failed to (?:list|watch)/i.test(text)) return null;
  if (
    /is forbidden|cannot (?:list|watch|get) |Unauthorized|\b40[13]\b|provide credentials|may not /.test(
      text,
    )
  )
    return 'api-rights';
  const isAway =
    /failed to (?:list|watch)|watch of .{1,80} ended|does not answer|dropped the connection|no route|nothing listens|could not be resolved|no trusted TLS|x509: |refused|timeout|unreachable/i;
  if (isAway.test(text)) return 'api-away';
  return text.includes('unsynced Kubernetes API') ? 'unsynced' : null;
}

/** A certificate names its server where the text has no address. */
function namedBy(cause: LoggedCause, text: string): string {
  if (cause !== 'certificate') return '';
  return /\bnot ([\w.:-]{1,253})$/.exec(text)?.[1] ?? '';
}
