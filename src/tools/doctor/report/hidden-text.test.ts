import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { Observations } from '../observe/observations.ts';
import { SearchDomains } from '../../capture/pair/search-walk.ts';
import { Redaction } from '../../capture/redaction.ts';
import { hiddenText } from './hidden-text.ts';

/** Observations of these names alone. */
function seen(names: readonly string[]): Observations {
  const observed = new Observations(new SearchDomains());
  Object.defineProperty(observed.names, 'list', {
    value: names.map((name) => ({ name, addresses: [] })),
  });
  return observed;
}

test('16 000 names of 127 labels are hidden in little memory, and in time that grows with their number', async () => {
  const made = Array.from({ length: 16_000 }, (_, nth) => {
    const digits = nth.toString(2).padStart(14, '0');
    return `${Array.from({ length: 127 }, (__, at) => digits[at % 14]).join('.')}.`;
  });
  const before = process.memoryUsage().heapUsed;
  const hide = hiddenText(seen(made), new Redaction('k'));
  assert.ok(process.memoryUsage().heapUsed - before < 100e6);
  const text = made.slice(0, 500).join(', ');
  const hidden = hide(`${text} and ${made[7]!.slice(2)}`);
  assert.doesNotMatch(hidden, /[01]/);
  const work = (count: number): void => {
    const some = made.slice(0, count);
    hiddenText(seen(some), new Redaction('k'))(some.slice(0, count >> 5).join(', '));
  };
  await costsAtMost(
    24,
    () => work(16_000),
    () => work(2000),
  );
});

test('a name is hidden whole, by its beginning and by its end; words of the text are not', () => {
  const hide = hiddenText(seen(['redis.cache.corp.test.', 'a.b.']), new Redaction('k'));
  const redaction = new Redaction('k');
  for (const name of ['redis.cache.corp.test.', 'redis.cache', 'cache.corp.test', 'redis.'])
    assert.equal(hide(`of "${name}", is`), `of "${redaction.name(name)}", is`);
  assert.equal(
    hide('the cache of redis is 2.5 s late, a b'),
    'the cache of redis is 2.5 s late, a b',
  );
  assert.equal(hide('dis.cache or cache.corp'), 'dis.cache or cache.corp');
});
