import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeLog, pluginLog } from '../base/log.ts';
import { VirtualClock } from '../base/virtual-clock.ts';
import { ReadingProgress, tellProgress } from './zone-progress.ts';

test('a slow zone reports its progress after five seconds, then every ten; a fast one reports nothing', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log = pluginLog(
    makeLog((line) => lines.push(line)),
    'file',
  );
  let shown = -1;
  const gauge = { set: (value: number): void => void (shown = value) };
  const progress = new ReadingProgress();
  // The reading thread has the same memory.
  const reader = new ReadingProgress(progress.words);
  const begin = (): ReturnType<typeof tellProgress> =>
    tellProgress(
      { clock, log, gauge },
      () => progress.records,
      () => `Reading: ${progress.print()}`,
    );
  const quick = begin();
  await clock.advance(4900);
  quick.cancel();
  await clock.advance(60_000);
  assert.equal(lines.length, 0);
  assert.equal(shown, 0);
  const slow = begin();
  reader.note(1000, 1003);
  await clock.advance(14_900);
  assert.deepEqual(
    lines.map((line) => line.trim()),
    ['[INFO] plugin/file: Reading: 1000 records so far, line 1003 (5s)'],
  );
  assert.equal(shown, 1000);
  reader.note(5000, 5003);
  reader.hasRead();
  await clock.advance(10_200);
  assert.match(
    lines.slice(1).join(''),
    /^\S+ \S+ Reading: all 5000 records are read and sorted \(15s\)\s*\S+ \S+ Reading: .*\(25s\)\s*$/,
  );
  slow.cancel();
  await clock.advance(60_000);
  assert.equal(lines.length, 3);
  assert.equal(shown, 0);
});
