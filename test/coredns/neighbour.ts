import type { Clock } from '../../src/server/base/clock.ts';
import { directive } from '../../src/server/corefile/syntax.ts';
import { definePlugin, type Next, type Plugin } from '../../src/server/engine/contract/plugin.ts';
import { metadataProviders } from '../../src/server/engine/contract/ports.ts';
import { FLAG } from '../../src/server/wire/iana.ts';
import { readMessage, writeMessage, type Question } from '../../src/server/wire/message.ts';
import type { Query } from '../../src/server/transport/query.ts';
import { failure, Reply, silence } from '../../src/server/wire/reply.ts';
import { fromUpstream } from '../../src/server/wire/upstream.ts';
import type { Written } from './events.ts';

/** The reply to a query in a chain, and its delay in milliseconds. */
export interface Later {
  readonly reply: Reply;
  readonly took: number;
}

/** The plugin at the end of the chain, which returns recorded replies. */
export function neighbour(answer: (query: Query) => Later, clock: Clock): Plugin {
  const syntax = directive({
    name: 'neighbour',
    summary: 'the rest of the chain in a recorded test',
    repeat: 'once',
  });
  return definePlugin({
    syntax,
    setup: (): Next => (query) => {
      const { reply, took } = answer(query);
      if (took === 0) return reply;
      query.keep();
      return new Promise((resolve) => clock.after(took, () => resolve(reply)));
    },
  });
}

/** A plugin that sets the metadata found in the test's context. */
export function given(notes: () => Readonly<Record<string, string>>): Plugin {
  const syntax = directive({ name: 'given', summary: 'metadata of a test', repeat: 'once' });
  return definePlugin({
    syntax,
    setup(_options, context, next) {
      context.offer(metadataProviders, (_query, map) => {
        for (const [label, value] of Object.entries(notes())) map.set(label, value);
      });
      return next;
    },
  });
}

/** The question, or a default for tests without one. */
export function questionOf(query: string | null): Question {
  const question = query === null ? [] : readMessage(Buffer.from(query, 'base64')).question;
  return question[0] ?? { name: 'example.org.', type: 1, class: 1 };
}

/**
 * A recorded reply for this query.
 * @param strict true if a reply to another question is a failure, as after `forward`; otherwise, it counts as a reply
 * to this query
 */
export function recordedReply(query: Query, written: Written, strict: boolean): Reply {
  const { replies, rcode, error } = written;
  const last = replies?.at(-1);
  if (last === undefined || last === null) {
    if (error === undefined) return rcode === 0 ? silence : failure(rcode, 'neighbour');
    return failure(rcode === 0 ? 2 : rcode, 'neighbour', new Error(error));
  }
  const message = readMessage(Buffer.from(last, 'base64'));
  const asked = questionOf(written.query);
  const about = message.question[0];
  if (
    strict &&
    about !== undefined &&
    `${about.name} ${about.type}` !== `${asked.name} ${asked.type}`
  )
    return failure(2, 'neighbour', new Error('a reply to another question'));
  const bytes = writeMessage({
    ...message,
    flags: message.flags | FLAG.QR,
    question: [{ name: query.name, type: query.type, class: query.class }],
  });
  const reply = fromUpstream(bytes, 0, bytes.length, 'neighbour');
  if (!(reply instanceof Reply)) throw reply;
  return reply;
}
