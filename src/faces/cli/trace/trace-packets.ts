/**
 * A trace beside a capture: the packets as tcpdump prints them, the system calls as strace does.
 */
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/report.ts';
import type { MessageDocument } from '../../../server/wire/exchange.ts';
import { answer, outcome } from './trace-words.ts';

interface Event {
  readonly atMs: number;
  readonly text: string;
}

function inOrder(events: readonly Event[]): string {
  return events
    .toSorted((one, other) => one.atMs - other.atMs)
    .map(({ atMs, text }) => `${(atMs / 1000).toFixed(6)} ${text}\n`)
    .join('');
}

/**
 * One line for what leaves and one for what comes. Source ports and ids of a plan are numbered in
 * order of first use.
 */
export function tcpdump(document: TraceDocument): string {
  const events = document.queries.flatMap((query): Event[] => {
    const { atMs, server, serverPort, sourcePort, port, type, name, tookMs, reply } = query;
    const id = sourcePort === null ? query.id : query.wireId;
    const client = `client.${sourcePort ?? `p${port}`}`;
    const proto = query.protocol === 'tcp' ? ' TCP' : '';
    const opt = query.edns === '' ? '' : ' [1au]';
    const ip = server.includes(':') ? 'IP6' : 'IP';
    const sent = `${ip} ${client} > ${server}.${serverPort}: ${id}+${opt} ${type}? ${name} (${sizeOf(query)})${proto}`;
    if (tookMs === null || reply === null) return [{ atMs, text: sent }];
    const came = `${ip} ${server}.${serverPort} > ${client}: ${id}${repliedWith(reply)}${proto}`;
    return [
      { atMs, text: sent },
      { atMs: atMs + tookMs, text: came },
    ];
  });
  return `${inOrder(events)}# ${outcome(document)}\n`;
}

const rcodes: Readonly<Record<string, string>> = {
  NOERROR: '',
  FORMERR: ' FormErr',
  SERVFAIL: ' ServFail',
  NXDOMAIN: ' NXDomain',
  NOTIMP: ' NotImp',
  REFUSED: ' Refused',
};

/**
 * `* 1/0/1 A 10.3.0.116 (96)`: flags, records of the three sections, those of the answer, bytes.
 */
function repliedWith(reply: MessageDocument): string {
  const has = (flag: string): boolean => reply.flags.includes(flag);
  const flags = `${has('aa') ? '*' : ''}${has('ra') ? '' : '-'}${has('tc') ? '|' : ''}${has('ad') ? '$' : ''}`;
  const extra = reply.additional.length + (reply.edns === null ? 0 : 1);
  const counts = `${reply.answer.length}/${reply.authority.length}/${extra}`;
  const records = reply.answer.map(({ type, data }) => ` ${type} ${data}`).join(',');
  const rcode = rcodes[reply.rcode] ?? ` ${reply.rcode}`;
  return `${rcode}${flags} ${counts}${records} (${reply.size})`;
}

/**
 * The calls that every client makes in one form or another; messages stand decoded where strace has
 * bytes.
 */
export function strace(document: TraceDocument): string {
  const open = new Set<string>();
  const events = document.queries.flatMap((query): Event[] => {
    const { atMs, protocol, port, type, name, tookMs, sourcePort } = query;
    const id = sourcePort === null ? query.id : query.wireId;
    // Descriptors 0 to 2 are taken.
    const fd = port + 2;
    const calls: Event[] = [];
    const call = (at: number, text: string): void => void calls.push({ atMs: at, text });
    const key = `${protocol} ${port}`;
    if (!open.has(key)) {
      open.add(key);
      const family = query.server.includes(':') ? 'AF_INET6' : 'AF_INET';
      call(
        atMs,
        `socket(${family}, ${protocol === 'tcp' ? 'SOCK_STREAM' : 'SOCK_DGRAM'}, 0) = ${fd}`,
      );
      if (protocol === 'tcp') call(atMs, `connect(${fd}, ${peerOf(query)}) = 0`);
    }
    const size = sizeOf(query) + (protocol === 'tcp' ? 2 : 0);
    call(
      atMs,
      `sendto(${fd}, {id=${id} ${type}? ${name}}, ${size}, 0, ${peerOf(query)}) = ${size}`,
    );
    if (query.answer === 'CLOSED')
      call(atMs, `recvfrom(${fd}) = -1 ECONNREFUSED (Connection refused)`);
    else if (tookMs !== null)
      call(
        atMs + tookMs,
        `recvfrom(${fd}, {id=${id} ${answer(query)}}) = ${query.reply?.size ?? 0}`,
      );
    return calls;
  });
  const lost = document.queries
    .filter((query) => query.answer === 'DROP')
    .map(({ id, wireId, sourcePort, type, name }) => {
      return `# no reply to id=${sourcePort === null ? id : wireId} ${type}? ${name}\n`;
    });
  return `${inOrder(events)}${lost.join('')}# ${outcome(document)}\n`;
}

function peerOf({ server, serverPort }: QueryDocument): string {
  return server.includes(':')
    ? `{sa_family=AF_INET6, sin6_port=htons(${serverPort}), sin6_addr="${server}"}`
    : `{sa_family=AF_INET, sin_port=htons(${serverPort}), sin_addr=inet_addr("${server}")}`;
}

/** Bytes of the query: header, question, OPT with or without a cookie of the client. */
function sizeOf({ name, edns }: QueryDocument): number {
  const question = (name === '.' ? 1 : Buffer.byteLength(name) + 1) + 4;
  const opt = edns === '' ? 0 : edns.endsWith('opt10') ? 23 : 11;
  return 12 + question + opt;
}
