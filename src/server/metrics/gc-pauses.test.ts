import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

test("this thread's collections are counted from the first call on", () => {
  const script = `
    import { observeGc } from '${new URL('gc-pauses.ts', import.meta.url).href}';
    const pauses = observeGc();
    const before = pauses();
    for (let i = 0; i < 3; i++) gc();
    const began = Date.now() / 1000 - 60;
    let after = pauses();
    for (; after.count < 3; after = pauses()) await new Promise((resolve) => setTimeout(resolve, 5));
    const isNow = began <= after.last && after.last <= Date.now() / 1000 + 60;
    console.log(JSON.stringify({ before, after, isNow, quantiles: [...after.quantiles] }));
  `;
  const words = ['--expose-gc', '--disable-warning=ExperimentalWarning', '--input-type=module'];
  const told = JSON.parse(
    execFileSync(process.execPath, [...words, '-e', script], { encoding: 'utf8' }),
  ) as {
    before: { count: number };
    after: { count: number; sum: number; last: number };
    isNow: boolean;
    quantiles: [number, number][];
  };
  assert.equal(told.before.count, 0);
  assert.ok(told.after.count >= 3);
  assert.deepEqual(
    told.quantiles.map(([share]) => share),
    [0, 0.25, 0.5, 0.75, 1],
  );
  const [least, most] = [told.quantiles[0]![1], told.quantiles[4]![1]];
  assert.ok(least > 0 && least <= most && most <= told.after.sum);
  assert.ok(told.isNow, `${told.after.last} is not in seconds since 1970`);
});
