/** Formats a trace as a series of dig outputs built from the actual replies, to paste where people expect dig. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { parseBase64 } from '../../../server/wire/encoding.ts';
import { readMessage } from '../../../server/wire/message.ts';
import { printMessage } from '../../../server/wire/print.ts';
import { label, outcome } from './trace-outcome.ts';

export function dig(document: TraceDocument): string {
  const { queries } = document;
  const parts = queries.map((query, index) => {
    const place = `query ${index + 1} of ${queries.length}, at ${printElapsed(query.atMs)}`;
    return `${command(query)}\n;; ${place}: ${query.why}\n${answer(query)}`;
  });
  return `${parts.join('\n')}\n;; ${label(document)}: ${outcome(document)}\n`;
}

function command({ name, type, server, serverPort, protocol, edns, ad }: QueryDocument): string {
  const size = /^edns (\d+)/.exec(edns)?.[1];
  const words = [`dig @${server}`];
  if (serverPort !== 53) words.push(`-p ${serverPort}`);
  words.push(name, type);
  if (protocol === 'tcp') words.push('+tcp');
  words.push(size === undefined ? '+noedns' : `+bufsize=${size}`);
  if (!edns.endsWith('opt10')) words.push('+nocookie');
  if (!ad) words.push('+noadflag');
  return `; <<>> ${words.join(' ')} <<>>`;
}

function answer(query: QueryDocument): string {
  const { server, serverPort, protocol, reply } = query;
  const where = `${server}#${serverPort}`;
  const bytes = reply === null ? null : parseBase64(reply.wire);
  if (bytes === null) {
    const what = query.answer === 'CLOSED' ? 'connection refused' : 'timed out';
    const waited =
      query.waitedMs === null ? '' : `;; waited for: ${printElapsed(query.waitedMs)}\n`;
    return `;; communications error to ${where}: ${what}\n${waited}`;
  }
  const lines = [
    `;; Query time: ${Math.round(query.tookMs ?? 0)} msec`,
    `;; SERVER: ${where}(${server}) (${protocol.toUpperCase()})`,
    `;; MSG SIZE  rcvd: ${bytes.length}`,
  ];
  return `;; Got answer:\n${printMessage(readMessage(bytes))}${lines.join('\n')}\n`;
}
