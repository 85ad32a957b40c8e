import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeLog, pluginLog } from '../../base/log.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { FailureLines } from './failure-lines.ts';

test('if thousands of zones fail, two hundred lines a minute are logged, and one with the number of others', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const log = pluginLog(
    makeLog((line) => lines.push(line)),
    'secondary',
  );
  const failures = new FailureLines(clock, log);
  for (let minute = 0; minute < 2; minute++) {
    for (let i = 0; i < 10_000; i++) failures.error(`zone ${i}`);
    await clock.advance(60_000);
    assert.equal(lines.length, 201);
    assert.match(lines.splice(0).at(-1)!, /^\[WARNING\] .* 9800 more lines about failed transfers/);
  }
  failures.warning('one');
  assert.equal(lines.length, 1);
  failures.stop();
});
