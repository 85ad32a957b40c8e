import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Input } from '../../../tools/capture/read/recognised-input.ts';
import { Reading } from '../../../tools/capture/read/reading.ts';
import { readingProgress } from './reading-progress.ts';

test('progress reports show the share of the file and the counts so far', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const told: string[] = [];
  const line = '[INFO] 10.0.0.1:4000 - 1 "A IN a. udp 30 false 512" NOERROR qr 40 0.001s\n';
  const reading = new Reading({});
  let taken = 0;
  const input: Input = {
    name: 'a.log',
    format: 'text',
    size: 1000,
    // eslint-disable-next-line @typescript-eslint/require-await -- files return async iterables
    chunks: (async function* () {
      yield Buffer.from(line);
    })(),
    taken: () => taken,
    close: () => undefined,
  };
  const timer = readingProgress({ progress: (text) => told.push(text()) }, input, reading);
  t.mock.timers.tick(500);
  return reading.read(input).then(() => {
    taken = 250;
    t.mock.timers.tick(500);
    clearInterval(timer);
    assert.deepEqual(told, ['0 % of a.log', '25 %, 1 message of a.log']);
  });
});
