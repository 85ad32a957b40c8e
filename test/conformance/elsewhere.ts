/** A plugin that simulates the rest of the internet. */
import { directive } from '../../src/server/corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../src/server/engine/contract/plugin.ts';
import { FLAG, RCODE, TYPE } from '../../src/server/wire/iana.ts';
import type { Query } from '../../src/server/transport/query.ts';
import { failure, type Reply } from '../../src/server/wire/reply.ts';
import { SECTION, type MessageWriter } from '../../src/server/wire/writer.ts';
import { parseName } from '../../src/server/wire/name.ts';

const syntax = directive({
  name: 'elsewhere',
  summary: 'the rest of the world, for tests: a host, a dead name, a failing one',
  repeat: 'once',
});

export const elsewhere: Plugin = definePlugin({
  syntax,
  setup:
    (_options, { writer }) =>
    (query) =>
      answer(query, writer),
});

function answer(query: Query, writer: MessageWriter): Reply {
  const { name, type } = query;
  if (name === 'fails.example.org.')
    return failure(RCODE.SERVFAIL, 'elsewhere', new Error('no route'));
  writer.reply(query, FLAG.AA);
  if (name === 'ext.example.org.' && type === TYPE.A) {
    writer.record(SECTION.answer, null, TYPE.A, 303, Uint8Array.of(198, 51, 100, 1));
  } else if (name.endsWith('.in-addr.arpa.') && type === TYPE.PTR) {
    writer.open(SECTION.answer, null, TYPE.PTR, 303);
    writer.name(parseName('elsewhere.example.org.'));
    writer.close();
  } else if (name !== 'ext.example.org.' && !name.endsWith('.in-addr.arpa.')) {
    return writer.finish(RCODE.NXDOMAIN, 'elsewhere');
  }
  return writer.finish(RCODE.NOERROR, 'elsewhere');
}
