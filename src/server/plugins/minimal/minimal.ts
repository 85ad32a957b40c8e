/** `minimal`: removes parts that clients do not need from replies. */
import { andThen } from '../../base/maybe.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { classify } from '../../wire/classify.ts';
import { HEADER } from '../../wire/iana.ts';
import { Records } from '../../wire/records.ts';
import { Reply } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';

const syntax = directive({
  name: 'minimal',
  summary: 'removes unnecessary records from positive replies',
  repeat: 'first',
});

/**
 * Removes the authority and additional sections from positive answers. Denials, delegations and errors remain complete.
 */
export const minimal: Plugin = definePlugin({
  syntax,
  setup(_options, _context, next) {
    return (query) => {
      const { type } = query;
      return andThen(next(query), minimize, type);
    };
  },
});

const records = new Records();

/**
 * Copies a reply up to the end of its answer section. Compression pointers only lead backwards, so none leads into the
 * removed part.
 */
function minimize(reply: Reply, type: number): Reply {
  if (reply.bare || reply.authority + reply.additional === 0) return reply;
  const kind = classify(reply, type);
  if (kind !== 'answer' && kind !== 'unfinished' && kind !== 'empty') return reply;
  let end = -1;
  for (records.of(reply); records.next();) {
    if (records.section === SECTION.answer) continue;
    end = records.ownerAt;
    break;
  }
  if (end < 0) return reply;
  const bytes = reply.bytes.slice(reply.start, end);
  bytes.fill(0, HEADER.NSCOUNT, HEADER.SIZE);
  const ttlAt = reply.ttlAt?.filter((at) => at < bytes.length) ?? null;
  return reply.with({ bytes, start: 0, end: bytes.length, ttlAt });
}
