import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { lineOutput } from './line-output.ts';

interface Pipe {
  readonly write: number;
  /** Reads the available text. */
  take(): string;
}

/** Creates a pipe that blocks its writer while it is full. */
function pipe(t: TestContext): Pipe {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-lines-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'pipe');
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
  // Open both ends at once, so that opening does not block.
  const both = openSync(path, 'r+');
  const read = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const write = openSync(path, 'w');
  closeSync(both);
  t.after(() => closeSync(write));
  const buffer = Buffer.alloc(1 << 20);
  const take = (): string => {
    try {
      return buffer.toString('utf8', 0, readSync(read, buffer));
    } catch {
      return '';
    }
  };
  return { write, take };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('the output of lines', () => {
  test('lines from several threads come out whole', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-lines-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const file = openSync(join(directory, 'log'), 'w');
    t.after(() => closeSync(file));
    const output = lineOutput(file);
    const script = `
      const { workerData } = require('node:worker_threads');
      import('${new URL('line-ring.ts', import.meta.url).href}').then(({ LineWriter }) => {
        const lines = new LineWriter(workerData.ring);
        for (let i = 0; i < 1000; i++) lines.write(workerData.id + ' line ' + i + ' ' + '€'.repeat(i % 50));
        // Whatever ends the thread: its lines are there.
        process.exit(1);
      });
    `;
    const exits = [0, 1].map(
      (id) =>
        new Promise((resolve) => {
          const workerData = { id, ring: output.ringOf(id) };
          new Worker(script, { eval: true, workerData }).on('exit', resolve);
        }),
    );
    const { write } = output;
    write('main line');
    await Promise.all(exits);
    assert.equal(await output.flushed(5000), true);
    const lines = readFileSync(join(directory, 'log'), 'utf8').trimEnd().split('\n');
    for (const id of [0, 1]) {
      assert.deepEqual(
        lines.filter((line) => line.startsWith(`${id} `)),
        Array.from({ length: 1000 }, (_, i) => `${id} line ${i} ${'€'.repeat(i % 50)}`),
      );
    }
    assert.ok(lines.includes('main line'));
    assert.equal(lines.length, 2001);
    assert.equal(output.lost, 0);
  });

  test('a stalled reader does not block the writer; lost lines are counted and reported when output resumes', async (t) => {
    const { write, take } = pipe(t);
    const output = lineOutput(write, 64 * 1024);
    const line = 'x'.repeat(999);
    // Start reading only after all writes, because a write that waited for a reader would never return.
    for (let i = 0; i < 1000; i++) {
      output.write(line);
      if (i % 100 === 0) await pause(30);
    }
    // The pipe's capacity is 64 KiB, and so is the ring's.
    const { lost } = output;
    assert.ok(lost > 800 && lost < 1000, `${lost}`);
    assert.equal(await output.flushed(100), false);
    // This may take several lines, as space becomes available.
    const told = (text: string): number =>
      [...text.matchAll(/^\[WARNING\] (\d+) log lines were lost/gm)].reduce(
        (sum, [, count]) => sum + Number(count),
        0,
      );
    let text = '';
    for (let turn = 0; told(text) < lost && turn < 500; turn++) {
      text += take();
      await pause(10);
    }
    assert.equal(told(text), lost);
    assert.equal(text.split(`${line}\n`).length - 1, 1000 - lost);
    output.write('and on');
    assert.equal(await output.flushed(5000), true);
    assert.equal(take(), 'and on\n');
    assert.equal(output.lost, lost);
  });

  test('a descriptor that cannot be written loses its lines and is not retried until there are new ones', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-lines-'));
    const path = join(directory, 'log');
    closeSync(openSync(path, 'w'));
    const readOnly = openSync(path, 'r');
    const output = lineOutput(readOnly);
    for (let i = 0; i < 10; i++) output.write('nowhere');
    while (output.lost < 10) await pause(5);
    await pause(200);
    assert.equal(output.lost, 10);
    output.write('nowhere either');
    while (output.lost < 11) await pause(5);
    closeSync(readOnly);
    rmSync(directory, { recursive: true });
  });
});
