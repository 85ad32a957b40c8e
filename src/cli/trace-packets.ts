/** A trace beside a capture: the packets as tcpdump prints them, the system calls as strace does. */
import type { QueryDocument, TraceDocument } from '../resolver/report.ts';
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

/** One line for what leaves and one for what comes. Source ports and ids are numbered in order of first use. */
export function tcpdump(document: TraceDocument): string {
  const events = document.queries.flatMap((query): Event[] => {
    const { atMs, server, port, id, type, name, tookMs } = query;
    const proto = query.protocol === 'tcp' ? ' TCP' : '';
    const opt = query.edns === '' ? '' : ' [1au]';
    const sent = `IP client.p${port} > ${server}.53: ${id}+${opt} ${type}? ${name}${proto}`;
    if (tookMs === null) return [{ atMs, text: sent }];
    const came = `IP ${server}.53 > client.p${port}: ${id} ${answer(query)}`;
    return [
      { atMs, text: sent },
      { atMs: atMs + tookMs, text: came },
    ];
  });
  return `${inOrder(events)}# ${outcome(document)}\n`;
}

/** The calls that every client makes in one form or another; messages stand decoded where strace has bytes. */
export function strace(document: TraceDocument): string {
  const open = new Set<string>();
  const events = document.queries.flatMap((query): Event[] => {
    const { atMs, protocol, port, id, type, name, tookMs } = query;
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
    const size = sizeOf(query);
    call(
      atMs,
      `sendto(${fd}, {id=${id} ${type}? ${name}}, ${size}, 0, ${peerOf(query)}) = ${size}`,
    );
    if (query.answer === 'CLOSED')
      call(atMs, `recvfrom(${fd}) = -1 ECONNREFUSED (Connection refused)`);
    else if (tookMs !== null) call(atMs + tookMs, `recvfrom(${fd}, {id=${id} ${answer(query)}})`);
    return calls;
  });
  const lost = document.queries
    .filter((query) => query.answer === 'DROP')
    .map((query) => `# no reply to id=${query.id} ${query.type}? ${query.name}\n`);
  return `${inOrder(events)}${lost.join('')}# ${outcome(document)}\n`;
}

function peerOf({ server }: QueryDocument): string {
  return server.includes(':')
    ? `{sa_family=AF_INET6, sin6_port=htons(53), sin6_addr="${server}"}`
    : `{sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("${server}")}`;
}

/** Bytes of the query: header, question, OPT with or without a cookie of the client; over TCP its length before it. */
function sizeOf({ name, edns, protocol }: QueryDocument): number {
  const question = (name === '.' ? 1 : Buffer.byteLength(name) + 1) + 4;
  const opt = edns === '' ? 0 : edns.endsWith('opt10') ? 23 : 11;
  return 12 + question + opt + (protocol === 'tcp' ? 2 : 0);
}
