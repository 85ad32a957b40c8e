/** The text of `ndots query`: dig's, whole or in the parts that were asked for. */
import type { Message } from '../wire/message.ts';
import { printMessage } from '../wire/print.ts';
import type { Parts } from './query-draft.ts';

type Part = 'comments' | 'question' | 'answer' | 'authority' | 'additional';

const title = /^;; (QUESTION|ANSWER|AUTHORITY|ADDITIONAL) SECTION:$/;

export function printReply(message: Message, show: Parts): string {
  let part: Part = 'comments';
  let text = '';
  for (const line of printMessage(message).split('\n').slice(0, -1)) {
    const section = title.exec(line)?.[1];
    if (section !== undefined) part = section.toLowerCase() as Part;
    const comment = section !== undefined || line === '';
    if (!show[part] || (comment && !show.comments)) continue;
    text += `${part === 'comments' || comment ? line : printLine(line, show)}\n`;
  }
  return text;
}

/** A record's line without the columns that nobody wants. A question has no TTL. */
function printLine(line: string, show: Parts): string {
  const found = /^(\S+\s+)(\d+\s+)?(\S+\s+)(\S.*)$/s.exec(line);
  if (found === null) return line;
  const [, owner = '', ttl = '', kind = '', rest = ''] = found;
  return `${owner}${show.ttl ? ttl : ''}${show.class ? kind : ''}${rest}`;
}
