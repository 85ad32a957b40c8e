import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { batchedUdp } from '../../runtime/packet-loop.ts';

const run = promisify(execFile);
const at = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/**
 * Builds a plugin module that allocates and frees memory and event loop wakeups, 60 ms at a time, as specified by
 * `busy`.
 */
const plugins = (busy: string): string => `
  import { Epoll } from ${at('../../runtime/epoll.ts')};
  import { libc } from ${at('../../runtime/libc.ts')};
  import { Memory } from ${at('../../runtime/memory.ts')};
  const wakeup = libc().wakeOn(new Epoll().fd);
  const work = () => {
    for (const until = Date.now() + 60; Date.now() < until;) {
      new Memory(64).free();
      wakeup.ref();
      wakeup.unref();
    }
  };
  ${busy}
  export const loadPlugins = async () => [];
`;

/** Starts workers with these plugins and ends each one, `rounds` times, at moments spread over 100 ms. */
const program = (busy: string, rounds: number, hangs: boolean): string => `
  import { lineOutput } from ${at('../../base/line-output.ts')};
  import { hasLoaded } from ${at('../contract/pulse.ts')};
  import { threadPort } from ${at('worker-ports.ts')};
  const lines = lineOutput(1);
  const pluginsModule = 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(plugins(busy))});
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const ended = [];
  for (let round = 0; round < ${rounds}; round++) {
    const port = threadPort({ id: 0, transport: 'auto', ring: lines.ringOf(0), pluginsModule }, 256);
    while (port.pulse[0] === 0) await sleep(1);
    ${busy.startsWith('set') ? 'while (!hasLoaded(port.pulse)) await sleep(1);' : ''}
    await sleep((100 * round) / ${rounds});
    ended.push(await port.end(${hangs}));
  }
  console.log(ended.join(' '));
  process.exit(0);
`;

describe('a worker that is ended', { skip: batchedUdp().available ? false : 'no FFI' }, () => {
  const cases = [
    ['while it loads', 'for (let turn = 0; turn < 3; turn++) work();'],
    ['while it gives back what it holds', 'setInterval(work, 1);'],
  ] as const;
  for (const [when, busy] of cases) {
    test(`${when} does not take the process with it`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-end-'));
      t.after(() => rmSync(directory, { recursive: true, force: true }));
      // Use a file. Threads inherit the options of a program given as text, and would not start.
      const file = join(directory, 'program.mjs');
      writeFileSync(file, program(busy, 5, false));
      const { stdout } = await run(process.execPath, [file], { timeout: 30_000 });
      assert.equal(stdout.trim(), 'true true true true true');
    });
  }

  // A worker without CPU time looks like this: it is considered hung, and then runs after all.
  const mistaken = [
    ['turns after all', 'setInterval(work, 1);'],
    ['does nothing but calls outside of JavaScript', 'setTimeout(() => { for (;;) work(); }, 1);'],
    ['reads sockets', 'setTimeout(() => { for (const epoll = new Epoll();;) epoll.look(); }, 1);'],
  ] as const;
  for (const [what, busy] of mistaken) {
    test(`because it seems to hang, but ${what}, does not take the process with it`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-end-'));
      t.after(() => rmSync(directory, { recursive: true, force: true }));
      const file = join(directory, 'program.mjs');
      writeFileSync(file, program(busy, 6, true));
      const { stdout } = await run(process.execPath, [file], { timeout: 60_000 });
      assert.equal(stdout.trim(), Array(6).fill('true').join(' '));
    });
  }
});
