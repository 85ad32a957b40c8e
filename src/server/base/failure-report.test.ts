import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureReport } from './failure-report.ts';
import { makeLog } from './log.ts';
import { VirtualClock } from './virtual-clock.ts';

test('two alternating kinds of failure are each reported once a minute, not at every change', async () => {
  const clock = new VirtualClock();
  const lines: string[] = [];
  const report = new FailureReport({
    log: makeLog((line) => lines.push(line)),
    clock,
    work: 'work',
  });
  for (let i = 0; i < 600; i++) {
    report.failed(
      { kind: i % 2 === 0 ? 'one' : 'other', message: '', advice: '' },
      100,
      'all stays',
    );
    await clock.advance(200);
  }
  assert.equal(lines.length, 4, lines.join('\n'));
});
