/** The text of `ndots query`: dig's, whole or in the parts that were asked for. */
import type { Message } from '../wire/message.ts';
import { printMessage } from '../wire/print.ts';
import type { Paint } from './page.ts';
import type { Parts } from './query-draft.ts';

type Part = 'comments' | 'question' | 'answer' | 'authority' | 'additional';

const title = /^;; (QUESTION|ANSWER|AUTHORITY|ADDITIONAL) SECTION:$/;

export function printReply(message: Message, show: Parts, paint: Paint): string {
  let part: Part = 'comments';
  let text = '';
  for (const line of printMessage(message).split('\n').slice(0, -1)) {
    const section = title.exec(line)?.[1];
    if (section !== undefined) part = section.toLowerCase() as Part;
    const comment = section !== undefined || line === '';
    if (!show[part] || (comment && !show.comments)) continue;
    const plain = part === 'comments' || comment;
    text += `${plain ? printComment(line, paint) : printLine(line, show, paint)}\n`;
  }
  return text;
}

/** The reply code is what counts of the header. */
function printComment(line: string, paint: Paint): string {
  const status = /^(;; ->>HEADER<<-.* status: )([A-Z0-9]+)(.*)$/.exec(line);
  if (status === null) return paint.dim(line);
  const [, before = '', rcode = '', after = ''] = status;
  const shown = rcode === 'NOERROR' ? paint.good(rcode) : paint.bad(rcode);
  return `${paint.dim(before)}${shown}${paint.dim(after)}`;
}

/** A record's line without the columns that nobody wants. A question has no TTL. */
function printLine(line: string, show: Parts, paint: Paint): string {
  if (line.startsWith(';')) return paint.dim(columns(line, show)?.join('') ?? line);
  const found = columns(line, show);
  if (found === null) return line;
  const [owner, ttl, kind, type, rest] = found;
  return `${owner}${paint.dim(ttl)}${paint.dim(kind)}${paint.strong(type)}${paint.good(rest)}`;
}

/** Owner, TTL, class, type, data; each with the blanks behind it. */
function columns(line: string, show: Parts): [string, string, string, string, string] | null {
  const found = /^(\S+\s+)(\d+\s+)?(\S+\s+)(\S+\s*)(.*)$/s.exec(line);
  if (found === null) return null;
  const [, owner = '', ttl = '', kind = '', type = '', rest = ''] = found;
  return [owner, show.ttl ? ttl : '', show.class ? kind : '', type, rest];
}
