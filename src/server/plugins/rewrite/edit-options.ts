/** EDNS options in replies to rewritten queries. */
import { isEchoed } from '../../wire/edns-options.ts';
import type { Query } from '../../transport/query.ts';
import { Reply } from '../../wire/reply.ts';
import { optionBytes, optionsIn, type EdnsOption } from '../../wire/edns.ts';
import { optionsOf } from './changed-query.ts';
import type { ReplyRule } from './rule.ts';

/**
 * Sets the reply's EDNS options. A reply that has options (from an upstream) keeps them, except those that `revert`
 * undoes. Any other reply gets the options of the rewritten query, including those that rules added.
 */
export function withReplyOptions(
  reply: Reply,
  asked: Query,
  rules: readonly ReplyRule[],
  codes: ReadonlySet<number>,
): Reply {
  const undo = rules.filter((rule) => rule.kind === 'option');
  if (reply.options !== null && undo.length === 0) return reply;
  let options =
    reply.options === null ? optionsOf(asked) : optionsIn(reply.options, 0, reply.options.length);
  for (const { code, before } of undo.toReversed()) options = undone(options, code, before);
  if (reply.options === null)
    options = options.filter(({ code, data }) => isEchoed(code, data.length) || codes.has(code));
  return reply.with({ options: optionBytes(options) });
}

function undone(
  options: readonly EdnsOption[],
  code: number,
  before: Uint8Array | null,
): EdnsOption[] {
  const at = options.findIndex((option) => option.code === code);
  if (at < 0) return [...options];
  return before === null ? options.toSpliced(at, 1) : options.with(at, { code, data: before });
}
