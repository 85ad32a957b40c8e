/** `nsid`: identifies the server that answered (RFC 5001). */
import { andThen } from '../../base/maybe.ts';
import { hostname } from 'node:os';
import { rest } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { optionBytes, optionsIn, type EdnsOption } from '../../wire/edns.ts';
import { OPTION } from '../../wire/iana.ts';
import { findOption, isEchoed } from '../../wire/edns-options.ts';
import type { Query } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';

const syntax = directive({
  name: 'nsid',
  summary: 'adds a server identifier to replies for clients that request it (RFC 5001)',
  repeat: 'once',
  args: {
    data: rest(word('DATA'), {
      help: "identifier; words are joined by blanks (default the machine's host name)",
    }),
  },
});

/** Adds the identifier to replies if the query has an NSID option; all others pass unchanged. */
export const nsid: Plugin = definePlugin({
  syntax,
  setup(options, _context, next) {
    const data = Buffer.from(
      options.data.length === 0 ? hostname() || 'localhost' : options.data.join(' '),
    );
    const option: EdnsOption = { code: OPTION.NSID, data };
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

/** Copies the options that would be echoed without NSID, because the query's bytes may get overwritten. */
function echoed({ bytes, optionsStart, optionsEnd }: Query): readonly EdnsOption[] {
  return optionsIn(bytes, optionsStart, optionsEnd).filter(({ code, data }) =>
    isEchoed(code, data.length),
  );
}

/** Adds the option to a copy of the reply, because the original may be shared. */
function withOption(reply: Reply, echo: readonly EdnsOption[], option: EdnsOption): Reply {
  if (reply === silence) return reply;
  const { options } = reply;
  const all = options === null ? echo : optionsIn(options, 0, options.length);
  const others = all.filter(({ code }) => code !== option.code);
  return reply.with({ options: optionBytes([...others, option]) });
}
