import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lossyNetwork, replicas, watchOf } from '../../../test/kit/lossy-watch.ts';
import { makeLog } from '../../server/base/log.ts';
import { seededRandom } from '../../server/base/random.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import { burnAlerts, ErrorBudget, SlidingWindow } from './budget.ts';
import { planChecks } from './check-file.ts';
import { noObjects } from './cluster-objects.ts';
import { CheckSchedule } from './watch.ts';

const random = seededRandom(7);

describe('ndots check serve', () => {
  test('detects a dead replica within two intervals, and reports its return', async () => {
    for (let offset = 0; offset < 10_000; offset += 1250) {
      const clock = new VirtualClock();
      const dead = new Set<string>();
      const { watch, lines } = watchOf(clock, dead, 0);
      const stop = new AbortController();
      const running = watch.run(stop.signal);
      await clock.advance(60_000 + offset);
      assert.equal(watch.state, 'ok');
      dead.add('10.0.0.2');
      await clock.advance(20_000);
      const down = watch.status().filter(({ isDown }) => isDown);
      assert.deepEqual(
        down.map(({ target }) => target),
        ['10.0.0.2:53'],
        `died ${offset} ms after a minute`,
      );
      dead.clear();
      await clock.advance(12_000);
      assert.equal(watch.state, 'ok');
      assert.match(lines.join('\n'), /10\.0\.0\.2:53 is down.*\n.*10\.0\.0\.2:53 is back/);
      stop.abort();
      await running;
    }
  });

  test('the rounds of two watchers do not stay in step', async () => {
    const starts = [1, 2].map(async (seed) => {
      const clock = new VirtualClock();
      const asked: number[] = [];
      const plan = planChecks({ every: 10_000 }, [{ kind: 'replica-answers', values: {} }]);
      const network = lossyNetwork(clock, new Set(), 0);
      const watch = new CheckSchedule({
        checks: plan.checks,
        context: () => {
          asked.push(clock.now());
          return { ...plan, network, random, clock, objects: noObjects, vip: [], replicas };
        },
        clock,
        random: seededRandom(seed),
        log: makeLog(() => undefined),
        targetsMax: 100,
      });
      const stop = new AbortController();
      const running = watch.run(stop.signal);
      await clock.advance(600_000);
      stop.abort();
      await running;
      return asked;
    });
    const [one = [], two = []] = await Promise.all(starts);
    assert.ok(one.length >= 60 && one.length <= 68, `${one.length} rounds`);
    const gaps = new Set(one.map((at, index) => Math.round((at - (two[index] ?? 0)) / 200)));
    assert.ok(gaps.size > 5, 'their distance changes');
  });

  test('targets beyond the limit are counted but not remembered; those that are gone are forgotten', async () => {
    const clock = new VirtualClock();
    const plan = planChecks({ every: 1000 }, [{ kind: 'replica-answers', values: {} }]);
    let many = Array.from({ length: 50 }, (_, index) => ({ host: `10.1.0.${index}`, port: 53 }));
    const network = lossyNetwork(clock, new Set(), 0);
    const watch = new CheckSchedule({
      checks: plan.checks,
      context: () => ({
        ...plan,
        network,
        random,
        clock,
        objects: noObjects,
        vip: [],
        replicas: many,
      }),
      clock,
      random,
      log: makeLog(() => undefined),
      targetsMax: 20,
    });
    const stop = new AbortController();
    const running = watch.run(stop.signal);
    await clock.advance(10_000);
    assert.equal(watch.status().length, 20);
    const forgotten = watch.samples().find(({ name }) => name.endsWith('targets_forgotten_total'));
    assert.ok((forgotten?.value ?? 0) >= 30);
    many = many.slice(0, 2);
    await clock.advance(30_000);
    assert.equal(watch.status().length, 2);
    stop.abort();
    await running;
  });

  test('a target whose state is unknown is neither up nor down', async () => {
    const clock = new VirtualClock();
    const plan = planChecks({ every: 1000 }, [{ kind: 'replica-answers', values: {} }]);
    const watch = new CheckSchedule({
      checks: plan.checks,
      context: () => ({
        ...plan,
        network: lossyNetwork(clock, new Set(), 0),
        random,
        clock,
        objects: noObjects,
        vip: [],
        replicas: [],
      }),
      clock,
      random,
      log: makeLog(() => undefined),
      targetsMax: 20,
    });
    const stop = new AbortController();
    const running = watch.run(stop.signal);
    await clock.advance(5000);
    stop.abort();
    await running;
    const samples = watch.samples();
    assert.equal(watch.state, 'unknown');
    assert.deepEqual(
      samples.filter(({ name }) => name === 'ndots_check_up'),
      [],
    );
    const unknown = samples.filter(
      ({ name, labels, value }) =>
        name === 'ndots_check_state' && labels['state'] === 'unknown' && value === 1,
    );
    assert.equal(unknown.length, 1);
  });
});

describe('a month of rounds every 10 s with 0.01 % message loss', () => {
  test('no target is down, and no window burns', () => {
    // Repeats the rounds separately, drawing the outcome of a query with two attempts in the same way as the network
    // above.
    const draw = seededRandom(99);
    const isLost = (): boolean => draw.integer(1_000_000) < 100;
    for (let target = 0; target < 3; target++) {
      const budget = new ErrorBudget(0.999, 10_000);
      let failures = 0;
      let lost = 0;
      for (let now = 0; now < 30 * 86_400_000; now += 10_000) {
        const first = isLost() || isLost();
        const second = first && (isLost() || isLost());
        if (first) lost++;
        failures = second ? failures + 1 : 0;
        budget.add(now, !second);
        assert.ok(failures < 2, 'down');
        if (second || now % 3_600_000 === 0) assert.equal(budget.alert(now), null);
      }
      assert.ok(lost > 20, `${lost} queries were lost`);
      assert.ok(budget.left(30 * 86_400_000) > 0.99);
    }
  });
});

describe('error budgets', () => {
  test('a window forgets events older than its length', () => {
    const window = new SlidingWindow(60_000);
    for (let now = 0; now < 30_000; now += 1000) window.add(now, false);
    assert.equal(window.bad(30_000), 30);
    assert.equal(window.bad(75_000), 14);
    assert.equal(window.total(200_000), 0);
  });

  test('an outage burns the budget fast, the alert ends soon after it, and the loss stays in the budget', () => {
    const budget = new ErrorBudget(0.999, 10_000);
    let now = 0;
    const pass = (ms: number, isGood: boolean): void => {
      for (const end = now + ms; now < end; now += 10_000) budget.add(now, isGood);
    };
    pass(4 * 3_600_000, true);
    assert.equal(budget.alert(now), null);
    pass(120_000, false);
    assert.equal(budget.alert(now)?.name, 'fast');
    pass(10 * 60_000, true);
    assert.notEqual(budget.alert(now)?.name, 'fast');
    const left = budget.left(now);
    assert.ok(left < 0.96 && left > 0.94, `${left}: 12 of 259 bad rounds that are allowed`);
  });

  test('a single failed round raises no alert, even right after the start', () => {
    const budget = new ErrorBudget(0.999, 30_000);
    budget.add(0, false);
    for (const { factor, longMs } of burnAlerts) assert.ok(budget.burnRate(1, longMs) < factor);
    assert.equal(budget.alert(1), null);
  });
});
