/** `header`: sets and clears flags in queries and replies. */
import { andThen } from '../../base/maybe.ts';
import { lines, type Refuse } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { FLAG } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';

interface HeaderRule {
  readonly on: 'query' | 'response';
  readonly set: boolean;
  readonly flags: number;
}

const flagBits: Readonly<Record<string, number>> = { aa: FLAG.AA, ra: FLAG.RA, rd: FLAG.RD };

function readRule({ text, place }: Token, words: readonly Token[], refuse: Refuse): HeaderRule {
  const on = text.toLowerCase();
  if (on !== 'query' && on !== 'response') {
    return refuse(`setting up rule: invalid selector=${on} should be query or response`, place);
  }
  const [action, ...flags] = words;
  if (action === undefined) return refuse('setting up rule: no flag action provided', place);
  if (flags.length === 0) {
    return refuse(
      'setting up rule: invalid length for flags, at least one should be provided',
      place,
    );
  }
  const word = action.text.toLowerCase();
  if (word !== 'set' && word !== 'clear') {
    return refuse(
      `setting up rule: unknown flag action=${word}, should be set or clear`,
      action.place,
    );
  }
  let bits = 0;
  for (const flag of flags) {
    const bit = flagBits[flag.text.toLowerCase()];
    if (bit === undefined) {
      return refuse(
        `setting up rule: unknown/unsupported flag=${flag.text.toLowerCase()}`,
        flag.place,
        {
          hint: 'The flags are aa, ra and rd.',
        },
      );
    }
    bits |= bit;
  }
  return { on, set: word === 'set', flags: bits };
}

const syntax = directive({
  name: 'header',
  summary: 'sets and clears header flags of queries and replies',
  repeat: 'first',
  unread: ['words'],
  properties: {
    rules: lines('*', 'query|response set|clear aa|ra|rd…', readRule, {
      help: 'rules are applied in the order listed',
    }),
  },
  check: ({ rules }, at) =>
    rules.length > 0
      ? []
      : [
          pluginProblem(
            'header',
            at,
            "Wrong argument count or unexpected line ending after 'header'",
          ),
        ],
});

/** The combined effect of several rules, as bits to set and bits to clear. */
interface Mask {
  readonly set: number;
  readonly clear: number;
}

function maskOf(rules: readonly HeaderRule[]): Mask {
  let set = 0;
  let clear = 0;
  for (const rule of rules) {
    set = rule.set ? set | rule.flags : set & ~rule.flags;
    clear = rule.set ? clear & ~rule.flags : clear | rule.flags;
  }
  return { set, clear };
}

/** Sets and clears flags in incoming queries and outgoing replies. */
export const header: Plugin = definePlugin({
  syntax,
  setup({ rules }, _context, next) {
    const onQuery = maskOf(rules.filter(({ on }) => on === 'query'));
    const onReply = maskOf(rules.filter(({ on }) => on === 'response'));
    const mask: Mask = { set: onReply.set & ~FLAG.RD, clear: onReply.clear & ~FLAG.RD };
    return (query) => {
      query.flags = (query.flags | onQuery.set) & ~onQuery.clear;
      const reply = next(query);
      repeatRd(query, onReply);
      return andThen(reply, change, mask);
    };
  },
});

/**
 * Sets the query's RD, because a reply copies it from the query along with other client fields. The links below have
 * already read the flags, and queries that wait are copies.
 */
function repeatRd(query: Query, { set, clear }: Mask): void {
  if (((set | clear) & FLAG.RD) !== 0)
    query.flags = (query.flags | (set & FLAG.RD)) & ~(clear & FLAG.RD);
}

/** Copies a reply before changing it, because it may share its bytes with a cache. */
function change(reply: Reply, { set, clear }: Mask): Reply {
  if (reply.bare) return reply;
  const flags = (reply.flags | set) & ~clear;
  if (flags === reply.flags) return reply;
  const bytes = reply.bytes.slice(reply.start, reply.end);
  bytes[2] = flags >> 8;
  bytes[3] = flags & 0xff;
  return reply.with({ bytes, start: 0, end: bytes.length });
}
