import { isEchoed, type Query } from '../../wire/query.ts';
import { Reply } from '../../wire/reply.ts';
import type { EdnsOption } from '../../wire/edns.ts';
import { optionBytes, optionsOf } from './changed-query.ts';
import type { ReplyRule } from './rule.ts';

/**
 * The EDNS options that go back. A reply with options of its own (an upstream's) keeps them, what `revert` says undone;
 * any other gets the echo of the query as it was rewritten, options that rules name included.
 */
export function withReplyOptions(
  reply: Reply,
  asked: Query,
  rules: readonly ReplyRule[],
  codes: ReadonlySet<number>,
): Reply {
  const undo = rules.filter((rule) => rule.kind === 'option');
  if (reply.options !== null && undo.length === 0) return reply;
  let options = reply.options === null ? optionsOf(asked) : optionsIn(reply.options);
  for (const { code, before } of undo.toReversed()) options = undone(options, code, before);
  if (reply.options === null)
    options = options.filter(({ code }) => isEchoed(code) || codes.has(code));
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

function optionsIn(bytes: Uint8Array): EdnsOption[] {
  const options: EdnsOption[] = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const code = (bytes[at]! << 8) | bytes[at + 1]!;
    const length = (bytes[at + 2]! << 8) | bytes[at + 3]!;
    options.push({ code, data: bytes.slice(at + 4, at + 4 + length) });
    at += 4 + length;
  }
  return options;
}
