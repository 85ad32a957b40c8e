import { isLater } from '../../base/maybe.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseName } from '../../wire/name.ts';
import { makeQuery, Query } from '../../transport/query.ts';
import { stamp } from '../../wire/stamp.ts';
import { filledCache } from '../../../../test/kit/filled-cache.ts';

test('a cached query leaves less than 8 bytes of garbage', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const { link, names } = filledCache(1000);
  const out = new Uint8Array(2048);
  const queries = names.map((name) => {
    const made = makeQuery(parseName(name), 1);
    return made.bytes.slice(made.start, made.end);
  });
  const query = new Query();
  const run = (times: number): void => {
    for (let i = 0; i < times; i++) {
      const bytes = queries[i % queries.length]!;
      query.read(bytes, 0, bytes.length);
      query.arrived = 2000;
      const reply = link(query);
      if (isLater(reply)) throw new Error('not a hit');
      stamp(reply, query, out, 0);
    }
  };
  run(200_000);
  let least = Infinity;
  for (let round = 0; round < 3; round++) {
    collect();
    const before = process.memoryUsage().heapUsed;
    run(10_000);
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / 10_000);
  }
  assert.ok(least < 8, `${least} bytes per query`);
});
