import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { healthy, play, STORY_START, type Fate, type Passing } from '../../../test/kit/story.ts';
import { watched } from '../../../test/kit/watched.ts';

/** Pods that look something up at regular intervals. */
function pods(
  many: number,
  everyMs: number,
  forMs: number,
  resolver = 'glibc',
): Parameters<typeof play>[0] {
  return Array.from({ length: many }, (_, pod) => ({
    address: `10.244.1.${pod + 1}`,
    resolver,
    lookups: Array.from({ length: Math.floor(forMs / everyMs) }, (_unused, at) => ({
      atMs: at * everyMs + ((pod * 137) % everyMs),
      name: ['redis.cache', 'api.example.com', 'web.shop', 'db.example.org'][(at + pod) % 4]!,
    })),
  }));
}

interface Span {
  readonly code: string;
  /** Milliseconds after the fault started, and after it ended. */
  readonly afterMs: number;
  endedMs: number | null;
}

/** Returns when findings started and ended relative to a fault. */
async function findingsOf(
  clients: Parameters<typeof play>[0],
  fault: (passing: Passing) => Fate,
  {
    fromMs,
    toMs,
    forMs,
  }: { readonly fromMs: number; readonly toMs: number; readonly forMs: number },
): Promise<readonly Span[]> {
  const packets = await play(clients, (passing) =>
    passing.atMs >= fromMs && passing.atMs < toMs ? fault(passing) : healthy(passing),
  );
  const spans: Span[] = [];
  watched(
    packets,
    {},
    (model, nowMs) => {
      const open = model.view({ view: 'now' }).findings;
      for (const { code } of open)
        if (!spans.some((span) => span.code === code && span.endedMs === null))
          spans.push({ code, afterMs: nowMs - STORY_START - fromMs, endedMs: null });
      for (const span of spans)
        if (span.endedMs === null && !open.some(({ code }) => code === span.code))
          span.endedMs = nowMs - STORY_START - toMs;
    },
    STORY_START + forMs,
  );
  return spans;
}

/** Findings about a server that does not answer. */
const isGrave = ({ code }: Span): boolean => code.startsWith('ND3');

describe('findings over time', () => {
  for (const resolver of ['glibc', 'go'])
    test(`a server that answers nothing is found within 10 s, and over within 60 s (${resolver})`, async () => {
      const spans = await findingsOf(pods(4, 1000, 170_000, resolver), () => ({ lost: true }), {
        ...{ fromMs: 45_000, toMs: 75_000, forMs: 170_000 },
      });
      const grave = spans.filter(isGrave);
      assert.ok(grave.length > 0, JSON.stringify(spans));
      const first = grave.reduce((least, { afterMs }) => Math.min(least, afterMs), Infinity);
      assert.ok(first > 0 && first <= 10_000, `found after ${first} ms`);
      for (const { code, endedMs } of grave)
        assert.ok(endedMs !== null && endedMs <= 60_000, `${code} ended after ${endedMs} ms`);
    });

  test('a server that fails external names is found within 10 s, and over within 60 s', async () => {
    const spans = await findingsOf(
      pods(4, 1000, 150_000),
      (passing) => (passing.name.includes('cluster') ? healthy(passing) : { rcode: 2, tookMs: 3 }),
      { fromMs: 45_000, toMs: 75_000, forMs: 150_000 },
    );
    const errors = spans.filter(({ code }) => code.startsWith('ND4'));
    assert.ok(errors.length > 0, JSON.stringify(spans));
    assert.ok(
      errors.some(({ afterMs }) => afterMs > 0 && afterMs <= 10_000),
      JSON.stringify(spans),
    );
    for (const { code, endedMs } of errors)
      assert.ok(endedMs !== null && endedMs <= 60_000, `${code} ended after ${endedMs} ms`);
  });

  test('a healthy cluster has no findings except the cost of search paths', async () => {
    const spans = await findingsOf(pods(4, 1000, 120_000), healthy, {
      ...{ fromMs: 0, toMs: 0, forMs: 120_000 },
    });
    assert.deepEqual([...new Set(spans.map(({ code }) => code))], ['ND2001']);
  });
});
