/**
 * Parses log lines from Unbound (unbound.conf(5): log-replies, log-queries and log-servfail, with or without
 * log-tag-queryreply).
 */

/** A reply, or a query without one. */
export interface UnboundLine {
  readonly kind: 'reply' | 'query';
  readonly address: string;
  readonly name: string;
  readonly type: string;
  readonly rcode: string;
  readonly tookMs: number;
  readonly isTcp: boolean;
  /** Milliseconds since 1970, or null if the line has no such timestamp. */
  readonly timeMs: number | null;
}

/** A failure that log-servfail explains. */
export interface UnboundFailure {
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

const HEAD =
  /(?:^|\s)(?:\[(\d{10})(?:\.(\d{1,6}))?\] )?unbound\[\d{1,8}(?::[\da-f]{1,4})?\]:? (?:\[\d{1,8}:[\da-f]{1,4}\] )?(?:info|error|query|reply): /;
const BODY =
  /^([\da-f.:]{2,45}) (\S{1,1100}) (\S{1,20}) (?:IN|CH|HS|ANY|CLASS\d+)(?: ([A-Z]{1,12}\d{0,5}) (\d{1,6}\.\d{1,9}) [01] \d{1,6}(?: (udp|tcp|dot|doh|doq)\b.{0,80})?)?$/i;
const FAILED = /^SERVFAIL <(\S{1,1100}) (\S{1,20}) \S{1,20}>: (.{1,1000})$/;

/** Null: not such a line. */
export function unboundLine(text: string): UnboundLine | UnboundFailure | null {
  const head = HEAD.exec(text);
  if (head === null) return null;
  const rest = text.slice(head.index + head[0].length);
  const failed = FAILED.exec(rest);
  if (failed !== null) return { name: failed[1]!, type: failed[2]!, text: failed[3]! };
  const body = BODY.exec(rest);
  if (body === null) return null;
  const [, address = '', name = '', type = '', rcode = '', took, protocol = 'udp'] = body;
  const [, seconds, fraction = '0'] = head;
  return {
    kind: took === undefined ? 'query' : 'reply',
    ...{ address, name, type, rcode: rcode.toUpperCase() },
    tookMs: 1000 * Number(took ?? 0),
    isTcp: protocol !== 'udp',
    timeMs: seconds === undefined ? null : 1000 * Number(`${seconds}.${fraction}`),
  };
}
