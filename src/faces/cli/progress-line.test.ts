import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ProgressLine } from './progress-line.ts';

function line(columns: number): {
  readonly progress: ProgressLine;
  readonly written: string[];
  at(ms: number): void;
} {
  const written: string[] = [];
  let nowMs = 0;
  const progress = new ProgressLine({
    write: (text) => void written.push(text),
    columns: () => columns,
    nowMs: () => nowMs,
  });
  return { progress, written, at: (ms) => (nowMs = ms) };
}

describe('the progress line of a verb', () => {
  test('is not shown if the work takes less than a second', () => {
    const { progress, written, at } = line(80);
    at(900);
    progress.tell(() => assert.fail('nobody reads it'));
    progress.clear();
    assert.deepEqual(written, []);
  });

  test('is overwritten at a limited rate, and cleared before other output', () => {
    const { progress, written, at } = line(80);
    for (let ms = 0; ms <= 1400; ms += 10) {
      at(ms);
      progress.tell(() => `at ${ms}`);
    }
    assert.deepEqual(written, ['\r\u001b[Kat 1000', '\r\u001b[Kat 1200', '\r\u001b[Kat 1400']);
    progress.clear();
    progress.clear();
    assert.deepEqual(written.slice(3), ['\r\u001b[K']);
  });

  test('stays on one line, without control sequences', () => {
    const { progress, written, at } = line(20);
    at(1000);
    progress.tell(() => `/a/long/path/\u001b[31m${'x'.repeat(40)} 12 %`);
    assert.equal(written[0]!.slice(4).length, 19);
    assert.ok(!written[0]!.slice(4).includes('\u001b'));
  });
});
