/** The placeholders in log formats and in dnstap's extra field. */
import { bracketed } from '../../base/ip.ts';
import { oneLine } from '../../base/visible.ts';
import { CLASS, className, FLAG, rcodeName, typeName } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';

/** Prints one line about a query, its reply as logged and the time taken. */
type Print = (query: Query, reply: Reply, elapsedMs: number) => string;

/** The default format for a log line, CoreDNS's `{common}`. */
export const commonFormat =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}';
const combinedFormat = `${commonFormat} "{>opcode}"`;

/**
 * Compiles a format. Placeholders in braces are replaced, and all other text is copied, including braces around an
 * unknown word. Metadata that was not set prints as `-`.
 */
export function compileFormat(format: string): Print {
  const text = format.replaceAll('{common}', commonFormat).replaceAll('{combined}', combinedFormat);
  const parts: Print[] = [];
  const texts: string[] = [];
  let from = 0;
  for (const found of text.matchAll(/\{([^{}]*)\}/g)) {
    const print = placeholder(found[1]!);
    if (print === null) continue;
    texts.push(text.slice(from, found.index));
    parts.push(print);
    from = found.index + found[0].length;
  }
  const end = text.slice(from);
  return (query, reply, elapsedMs) => {
    let line = '';
    for (let i = 0; i < parts.length; i++) line += texts[i]! + parts[i]!(query, reply, elapsedMs);
    return line + end;
  };
}

function placeholder(word: string): Print | null {
  if (word.startsWith('/')) {
    const label = word.slice(1);
    return (query) => oneLine(query.notes?.get(label) ?? '-');
  }
  return Object.hasOwn(placeholders, word) ? placeholders[word]! : null;
}

const placeholders: Readonly<Record<string, Print>> = {
  type: (query) => typeName(query.type),
  name: (query) => query.name,
  class: (query) => printClass(query.class),
  proto: ({ overStream }) => (overStream ? 'tcp' : 'udp'),
  size: (query) => String(query.end - query.start),
  remote: (query) => bracketed(query.client),
  port: (query) => String(query.peerPort),
  local: (query) => (query.local === '' ? '-' : bracketed(query.local)),
  duration: (_query, _reply, elapsedMs) => printSeconds(elapsedMs),
  rcode: (_query, reply) => (reply === silence ? '-' : printRcode(reply.rcode)),
  rsize: (query, reply) => String(replySize(query, reply)),
  '>rflags': (query, reply) => (reply === silence ? '-' : printFlags(query, reply)),
  '>bufsize': (query) => String(query.offered),
  '>do': (query) => (query.dnssecOk ? 'true' : 'false'),
  '>id': (query) => String(query.id),
  '>opcode': (query) => String(query.opcode),
};

/**
 * Returns the values from a query and its reply for a structured log. The first values have CoreDNS's names, and the
 * others those of the placeholders. If there is no reply, the result code is null.
 */
export function queryFields(
  query: Query,
  reply: Reply,
  elapsedMs: number,
): Readonly<Record<string, string | number | boolean | null>> {
  const answered = reply !== silence;
  return {
    client_ip: query.client,
    client_port: query.peerPort,
    qname: query.name,
    qtype: typeName(query.type),
    qclass: printClass(query.class),
    rcode: answered ? printRcode(reply.rcode) : null,
    duration_seconds: Math.max(0, Math.round(elapsedMs * 1e6)) / 1e9,
    proto: query.overStream ? 'tcp' : 'udp',
    id: query.id,
    opcode: query.opcode,
    do: query.dnssecOk,
    bufsize: query.offered,
    size: query.end - query.start,
    rsize: replySize(query, reply),
    rflags: answered ? printFlags(query, reply) : null,
  };
}

function replySize(query: Query, reply: Reply): number {
  if (reply === silence) return 0;
  return reply.bare ? query.questionEnd : reply.size;
}

/** Prints class 255 as a number, as CoreDNS does, because CoreDNS's library knows `ANY` only as a type. */
function printClass(number: number): string {
  return number === CLASS.ANY ? `CLASS${number}` : className(number);
}

function printRcode(rcode: number): string {
  const name = rcodeName(rcode);
  return name.startsWith('RCODE') ? String(rcode) : name;
}

/** Prints seconds as Go does: no exponent, no more digits than needed, and down to nanoseconds. */
export function printSeconds(elapsedMs: number): string {
  const nanoseconds = Math.max(0, Math.round(elapsedMs * 1e6));
  const whole = Math.floor(nanoseconds / 1e9);
  const rest = nanoseconds % 1e9;
  if (rest === 0) return `${whole}s`;
  let digits = rest;
  let width = 9;
  for (; digits % 10 === 0; digits /= 10) width--;
  return `${whole}.${String(digits).padStart(width, '0')}s`;
}

const flagNames: readonly (readonly [number, string])[] = [
  [FLAG.AA, 'aa'],
  [FLAG.TC, 'tc'],
  [FLAG.RD, 'rd'],
  [FLAG.RA, 'ra'],
  [FLAG.Z, 'z'],
  [FLAG.AD, 'ad'],
  [FLAG.CD, 'cd'],
];

const OF_QUERY = FLAG.RD | FLAG.CD;
const known = new Map<number, string>();

/**
 * Prints the flags as the client sees them. RD and CD are the query's own, and AD is set only if the client requested
 * it.
 */
function printFlags(query: Query, reply: Reply): string {
  const wanted =
    query.dnssecOk || (query.flags & FLAG.AD) !== 0 ? reply.flags : reply.flags & ~FLAG.AD;
  const flags = (wanted & ~(OF_QUERY | FLAG.OPCODE | FLAG.RCODE)) | (query.flags & OF_QUERY);
  let text = known.get(flags);
  if (text === undefined) {
    text = ['qr', ...flagNames.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name)].join(
      ',',
    );
    known.set(flags, text);
  }
  return text;
}
