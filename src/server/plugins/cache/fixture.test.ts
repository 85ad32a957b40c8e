import { VirtualClock } from '../../base/virtual-clock.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { sleep } from '../../base/clock.ts';
import { OPTION, rcodeName } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';
import type { Query } from '../../transport/query.ts';
import { failure, type Reply } from '../../wire/reply.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { replyBytes, type Answer } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { cache } from './cache.ts';

/** The upstream behind the cache in these tests, as a function; `afterMs` delays an answer. */
export type Behind = (query: Query) => Answer | null;

export interface CacheWorld extends World {
  /** The questions that the cache passed on, as `NAME TYPE`. */
  readonly asked: Query[];
}

function behindPlugin(behind: Behind, asked: Query[]): Plugin {
  return definePlugin({
    syntax: directive({ name: 'behind', summary: 'answers from a function', repeat: 'once' }),
    plan(_, plan) {
      plan.anyClass = true;
    },
    setup: (_, context) => (query) => {
      const kept = query.owned ? query.asking(query.wireName) : query.keep();
      kept.proto = query.proto;
      asked.push(kept);
      const answer = behind(kept);
      const reply = answer === null ? failure(2, 'behind') : replyOf(kept, answer);
      const later = answer?.afterMs;
      return later === undefined ? reply : sleep(context.clock, later).then(() => reply);
    },
  });
}

function replyOf(query: Query, answer: Answer): Reply {
  const bytes = answer.bytes ?? replyBytes(query, answer);
  const reply = fromUpstream(bytes, 0, bytes.length, 'behind');
  if (reply instanceof Error) throw reply;
  return reply;
}

/** @param others plugins between the cache and the upstream, each with its Corefile line */
export async function cacheWorld(
  lines: string,
  behind: Behind,
  zone = '.',
  ...others: readonly Plugin[]
): Promise<CacheWorld> {
  const asked: Query[] = [];
  const clock = new VirtualClock();
  const text = `${zone} {\n ${lines.replaceAll('{', '{\n').replaceAll(';', '\n').replaceAll('}', '\n}\n')}\n${others.map(({ name }) => ` ${name}\n`).join('')} behind\n}`;
  const world = await makeWorld(text, {
    clock,
    plugins: [cache, ...others, behindPlugin(behind, asked)],
  });
  // A query time of 0 means "unknown".
  await clock.advance(1000);
  return Object.assign(world, { asked });
}

/** Formats a reply as `NOERROR a,b 30`: the result code, the first data word of each answer, and the TTLs. */
export function brief(message: Message): string {
  const all = [...message.answer, ...message.authority, ...message.additional];
  const ttls = [...new Set(all.map(({ ttl }) => ttl))].join('/');
  const data = message.answer.map((record) => Object.values(record.data).join(' ')).join(',');
  return [rcodeName(message.rcode), data, ttls].filter((part) => part !== '').join(' ');
}

/** Returns the Extended DNS Error code, or null if there is none. */
export function errorCode(message: Message): number | null {
  const option = message.edns?.options.find(({ code }) => code === OPTION.EDE);
  return option === undefined ? null : (option.data[0]! << 8) | option.data[1]!;
}

/** An SOA record that makes negative answers expire after a minute. */
export const soa = 'example.org. 60 SOA ns.example.org. host.example.org. 1 7200 1800 86400 60';
