/** `any`: a short answer to ANY queries (RFC 8482). */
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { SECTION } from '../../wire/writer.ts';

const syntax = directive({
  name: 'any',
  summary: 'answers ANY queries with a minimal reply (RFC 8482)',
  repeat: 'first',
});

const TTL_SECONDS = 8482;

const data = Uint8Array.from(
  ['ANY obsoleted', 'See RFC 8482'].flatMap((text) => [text.length, ...Buffer.from(text)]),
);

/** Answers ANY queries with a HINFO record that cites the RFC; other types pass through unchanged. */
export const any: Plugin = definePlugin({
  syntax,
  setup(_options, { writer }, next) {
    return (query) => {
      if (query.type !== TYPE.ANY) return next(query);
      writer.reply(query, 0);
      writer.record(SECTION.answer, null, TYPE.HINFO, TTL_SECONDS, data);
      return writer.finish(RCODE.NOERROR, 'any');
    };
  },
});
