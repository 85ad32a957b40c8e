import assert from 'node:assert/strict';
import { test } from 'node:test';
import { spread } from './dnsperf.ts';
import { misses, printFigure, readFigures, type Figure, type Goal } from './figures.ts';
import { machine, printRun, type Run } from './history.ts';

const figure = (value: number, goal: Goal | null): Figure => ({
  name: 'exec to first answer',
  value,
  unit: 'ms',
  goal,
});

test('a goal is met at its limit and missed beyond it', () => {
  assert.ok(!misses(figure(180, { atMost: 180 })));
  assert.ok(misses(figure(181, { atMost: 180 })));
  assert.ok(!misses(figure(2, { atLeast: 2 })));
  assert.ok(misses(figure(1.9, { atLeast: 2 })));
  assert.ok(!misses(figure(1e9, null)));
});

test('a figure that could not be measured misses any goal', () => {
  for (const goal of [{ atMost: 1 }, { atLeast: 1 }]) assert.ok(misses(figure(NaN, goal)));
});

test('a missed goal is marked on the line of the figure', () => {
  assert.match(printFigure(figure(200, { atMost: 180 })), / 200 ms {3}\(goal ≤ 180: MISSED\)$/);
  assert.match(printFigure(figure(170, { atMost: 180 })), / 170 ms {3}\(goal ≤ 180\)$/);
  assert.match(printFigure(figure(170, null)), / 170 ms$/);
});

test('the median of several rounds is reported with its quartiles', () => {
  assert.deepEqual(spread([9, 1, 2, 3, 4]), { median: 3, quartiles: [2, 4] });
  assert.deepEqual(spread([4, 1]), { median: 2.5, quartiles: [1.75, 3.25] });
  const found: Figure = { ...figure(3, { atMost: 2 }), unit: '', quartiles: [2, 4] };
  assert.match(printFigure(found), / 3 \[2–4\] {3}\(goal ≤ 2: MISSED\)$/);
  const run = JSON.parse(printRun(machine(null), [found], [])) as Run;
  assert.deepEqual(run.figures, { 'exec to first answer': [3, '', 2, 4] });
});

test('figures and peers are read as a benchmark wrote them', () => {
  const told = [figure(170, { atMost: 180 }), { peer: 'unbound', version: '1.17.1' }];
  const { figures, peers } = readFigures(told.map((each) => `${JSON.stringify(each)}\n`).join(''));
  assert.deepEqual([...figures, ...peers], told);
  assert.deepEqual(readFigures(''), { figures: [], peers: [] });
});

test("a run is one line that names the machine's properties, and no directory or host", () => {
  const peers = [{ peer: 'unbound', version: '1.17.1' }];
  const line = printRun(machine(null), [figure(170, null), figure(NaN, null)], peers);
  assert.doesNotMatch(line, /\n/);
  const run = JSON.parse(line) as Run;
  assert.match(run.date, /^\d{4}-\d\d-\d\d$/);
  assert.match(run.commit, /^([0-9a-f]{12}\+?)?$/);
  assert.equal(run.node, process.version);
  assert.ok(run.processors >= 1 && run.processor !== '' && run.kernel !== '');
  assert.deepEqual(run.peers, { unbound: '1.17.1' });
  assert.deepEqual(run.figures, { 'exec to first answer': [null, 'ms'] });
  assert.deepEqual(
    Object.keys(run).filter((key) => /host|directory|path|user/.test(key)),
    [],
  );
});
