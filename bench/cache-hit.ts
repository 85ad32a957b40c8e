/**
 * The cost of a cache hit: `node bench/cache-hit.ts`. Decodes the query, passes it to the cache's handler, and stamps
 * the reply. The difference from the same loop without the handler is the handler's own cost.
 */
import { isLater } from '../src/server/base/maybe.ts';
import { parseName } from '../src/server/wire/name.ts';
import { makeQuery, Query } from '../src/server/transport/query.ts';
import { stamp } from '../src/server/wire/stamp.ts';
import { filledCache } from '../test/kit/filled-cache.ts';
import { figure, smoke } from './kit/figures.ts';

const { link, names } = filledCache(5000);
const messages = names.map((name) => {
  const { bytes, start, end } = makeQuery(parseName(name), 1);
  return bytes.slice(start, end);
});
const query = new Query();
const out = new Uint8Array(2048);
const rounds = smoke ? 20_000 : 2_000_000;

function nsPerQuery(each: (bytes: Uint8Array) => void): number {
  for (let i = 0; i < rounds / 6; i++) each(messages[i % messages.length]!);
  let best = Infinity;
  for (let round = 0; round < 3; round++) {
    const began = process.hrtime.bigint();
    for (let i = 0; i < rounds; i++) each(messages[i % messages.length]!);
    best = Math.min(best, Number(process.hrtime.bigint() - began) / rounds);
  }
  return best;
}

const read = nsPerQuery((bytes) => {
  query.read(bytes, 0, bytes.length);
  query.arrived = 2000;
});
const found = nsPerQuery((bytes) => {
  query.read(bytes, 0, bytes.length);
  query.arrived = 2000;
  if (isLater(link(query))) throw new Error('not a hit');
});
const whole = nsPerQuery((bytes) => {
  query.read(bytes, 0, bytes.length);
  query.arrived = 2000;
  const reply = link(query);
  if (isLater(reply)) throw new Error('not a hit');
  stamp(reply, query, out, 0);
});
figure('query read', read, 'ns');
figure('cache link', found - read, 'ns');
figure('reply stamped', whole - found, 'ns');
figure('a cache hit in all', whole, 'ns');
