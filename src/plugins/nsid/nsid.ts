import { andThen } from '../../base/maybe.ts';
import { hostname } from 'node:os';
import { rest } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/values.ts';
import { definePlugin, type Plugin } from '../../server/contract/plugin.ts';
import { OPTION } from '../../wire/iana.ts';
import { findOption, isEchoed, type Query } from '../../wire/query.ts';
import { Reply, silence } from '../../wire/reply.ts';

const syntax = directive({
  name: 'nsid',
  summary: 'tells clients that ask which server answered (RFC 5001)',
  repeat: 'once',
  args: {
    data: rest(word('DATA'), {
      help: "the identifier, words joined by blanks (default the machine's host name)",
    }),
  },
});

/** Adds the identifier to replies for queries with an NSID option; others pass untouched. */
export const nsid: Plugin = definePlugin({
  syntax,
  setup(options, _site, next) {
    const data = Buffer.from(
      options.data.length === 0 ? hostname() || 'localhost' : options.data.join(' '),
    );
    const option = optionBytes(OPTION.NSID, data);
    return (query) => {
      if (
        !query.edns ||
        findOption(query.bytes, query.optionsStart, query.optionsEnd, OPTION.NSID) === null
      ) {
        return next(query);
      }
      const echo = echoed(query);
      return andThen(next(query), (reply) => withOption(reply, echo, option));
    };
  },
});

function optionBytes(code: number, data: Uint8Array): Uint8Array {
  return Uint8Array.of(code >> 8, code & 0xff, data.length >> 8, data.length & 0xff, ...data);
}

/** What the client would have got back had nobody written options: copied now, since the query may not live on. */
function echoed({ bytes, optionsStart, optionsEnd }: Query): Uint8Array {
  return without(
    bytes.slice(optionsStart, optionsEnd),
    (code) => !isEchoed(code) || code === OPTION.NSID,
  );
}

/** A reply may be shared: the option goes into a new one on the same bytes. */
function withOption(reply: Reply, echo: Uint8Array, option: Uint8Array): Reply {
  if (reply === silence) return reply;
  const others =
    reply.options === null ? echo : without(reply.options, (code) => code === OPTION.NSID);
  return reply.with({ options: Buffer.concat([others, option]) });
}

function without(options: Uint8Array, drops: (code: number) => boolean): Uint8Array {
  const kept: Uint8Array[] = [];
  for (let at = 0; at + 4 <= options.length;) {
    const code = (options[at]! << 8) | options[at + 1]!;
    const next = at + 4 + ((options[at + 2]! << 8) | options[at + 3]!);
    if (!drops(code)) kept.push(options.subarray(at, next));
    at = next;
  }
  return Buffer.concat(kept);
}
