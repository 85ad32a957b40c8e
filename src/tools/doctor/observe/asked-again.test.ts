import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { SearchDomains } from '../../capture/pair/search-walk.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { AskedAgain } from './asked-again.ts';

/** An answered query of one client. */
function answered(name: string, sentMs: number, id: number = 7): SeenExchange {
  const client = { address: '10.244.0.9', port: 40_000 };
  return {
    ...{ protocol: 'udp', client, server: { address: '10.96.0.10', port: 53 }, hops: [] },
    ...{ name, type: 1, id, sentMs, repliedMs: sentMs + 1, ending: 'answered', attempt: 1 },
    ...{ rcode: 0, replyFlags: 0x8180, answers: 1, replyBytes: 60 },
  } as unknown as SeenExchange;
}

/** The repeats of a question, with other questions in between. */
function repeatsAfter(others: number, again: number = 1): number {
  const asked = new AskedAgain(new SearchDomains());
  asked.add(answered('first.example.', 0));
  for (let turn = 0; turn < again; turn++) {
    for (let at = 0; at < others; at++)
      asked.add(answered(`x${turn}-${at}.example.`, 1000 * turn, 8 + (at % 100)));
    asked.add(answered('first.example.', 1000 * (turn + 1)));
  }
  return asked.unexplained([]).length;
}

test('a repeat is found behind 19 999 other questions, and not behind 20 000', () => {
  assert.equal(repeatsAfter(19_999), 1);
  assert.equal(repeatsAfter(20_000), 0);
});

test('a question that is repeated is remembered longer', () => {
  assert.equal(repeatsAfter(9000, 5), 5);
});

test('a client that queries one name for very many types does not make each query slower', async () => {
  const query = (types: number) => (): void => {
    const asked = new AskedAgain(new SearchDomains());
    for (let at = 0; at < types; at++)
      asked.add({ ...answered('many.example.', at / 100, at), type: 1000 + at });
  };
  await costsAtMost(24, query(4000), query(500));
});
