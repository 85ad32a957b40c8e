/** Prints `ndots query` output in dig's format, either in full or only the requested parts. */
import type { Message } from '../../../server/wire/message.ts';
import { printMessage } from '../../../server/wire/print.ts';
import type { Paint } from '../page.ts';
import type { PrintedParts } from './query-draft.ts';

type PrintedPart = 'comments' | 'question' | 'answer' | 'authority' | 'additional';

const title = /^;; (QUESTION|ANSWER|AUTHORITY|ADDITIONAL) SECTION:$/;

/** Prints a reply in dig's format, leaving out any parts that were switched off. */
export function printReply(message: Message, show: PrintedParts, paint: Paint): string {
  let part: PrintedPart = 'comments';
  let text = '';
  for (const line of printMessage(message).split('\n').slice(0, -1)) {
    const section = title.exec(line)?.[1];
    if (section !== undefined) part = section.toLowerCase() as PrintedPart;
    const comment = section !== undefined || line === '';
    if (!show[part] || (comment && !show.comments)) continue;
    const plain = part === 'comments' || comment;
    text += `${plain ? printComment(line, paint) : printLine(line, show, paint)}\n`;
  }
  return text;
}

/** Highlights the reply code, which is the most important part of the header. */
function printComment(line: string, paint: Paint): string {
  const mark = ', status: ';
  const from = line.startsWith(';; ->>HEADER<<-') ? line.indexOf(mark) : -1;
  if (from < 0) return paint.dim(line);
  const at = from + mark.length;
  const end = line.indexOf(',', at);
  const rcode = line.slice(at, end);
  const shown = rcode === 'NOERROR' ? paint.good(rcode) : paint.bad(rcode);
  return `${paint.dim(line.slice(0, at))}${shown}${paint.dim(line.slice(end))}`;
}

/** Prints a record, leaving out any columns that were switched off. */
function printLine(line: string, show: PrintedParts, paint: Paint): string {
  // Each word has its trailing spaces. Questions have neither TTL nor data.
  const words = line.match(/\S+\s*/g) ?? [];
  const counts = /^\d/.test(words[1] ?? '') ? 1 : 0;
  const [kind = '', type = ''] = words.slice(1 + counts);
  const [owner = '', ttl = ''] = words;
  const meta = `${counts === 1 && show.ttl ? ttl : ''}${show.class ? kind : ''}`;
  const data = words.slice(3 + counts).join('');
  if (line.startsWith(';')) return paint.dim(`${owner}${meta}${type}${data}`);
  return `${owner}${paint.dim(meta)}${paint.strong(type)}${paint.good(data)}`;
}
