import assert from 'node:assert/strict';
import { test } from 'node:test';
import { misses, printFigure, readFigures, type Figure, type Goal } from './figures.ts';
import { machine, printRun, type Run } from './history.ts';

const figure = (value: number, goal: Goal | null): Figure => ({
  name: 'exec to first answer',
  value,
  unit: 'ms',
  goal,
});

test('a goal is met at its bound and missed beyond it', () => {
  assert.ok(!misses(figure(180, { atMost: 180 })));
  assert.ok(misses(figure(181, { atMost: 180 })));
  assert.ok(!misses(figure(2, { atLeast: 2 })));
  assert.ok(misses(figure(1.9, { atLeast: 2 })));
  assert.ok(!misses(figure(1e9, null)));
});

test('a figure that could not be measured misses any goal', () => {
  for (const goal of [{ atMost: 1 }, { atLeast: 1 }]) assert.ok(misses(figure(NaN, goal)));
});

test('a missed goal is told in the line of the figure', () => {
  assert.match(printFigure(figure(200, { atMost: 180 })), / 200 ms {3}\(goal ≤ 180: MISSED\)$/);
  assert.match(printFigure(figure(170, { atMost: 180 })), / 170 ms {3}\(goal ≤ 180\)$/);
  assert.match(printFigure(figure(170, null)), / 170 ms$/);
});

test('figures and peers come back as a benchmark told them', () => {
  const told = [figure(170, { atMost: 180 }), { peer: 'unbound', version: '1.17.1' }];
  const { figures, peers } = readFigures(told.map((each) => `${JSON.stringify(each)}\n`).join(''));
  assert.deepEqual([...figures, ...peers], told);
  assert.deepEqual(readFigures(''), { figures: [], peers: [] });
});

test('a run is one line that says where it ran, and names no folder and no host', () => {
  const peers = [{ peer: 'unbound', version: '1.17.1' }];
  const line = printRun(machine(), [figure(170, null), figure(NaN, null)], peers);
  assert.doesNotMatch(line, /\n/);
  const run = JSON.parse(line) as Run;
  assert.match(run.date, /^\d{4}-\d\d-\d\d$/);
  assert.match(run.commit, /^([0-9a-f]{12}\+?)?$/);
  assert.equal(run.node, process.version);
  assert.ok(run.processors >= 1 && run.processor !== '' && run.kernel !== '');
  assert.deepEqual(run.peers, { unbound: '1.17.1' });
  assert.deepEqual(run.figures, { 'exec to first answer': [null, 'ms'] });
  assert.deepEqual(
    Object.keys(run).filter((key) => /host|folder|path|user/.test(key)),
    [],
  );
});
