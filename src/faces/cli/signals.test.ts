import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const unshare = ['unshare', '--pid', '--fork', '--kill-child'];
const skip =
  spawnSync(unshare[0]!, [...unshare.slice(1), 'true']).status !== 0 &&
  'process namespaces cannot be made here';

// The kernel delivers to process 1 only signals that it handles. Otherwise, the container would be killed after its
// grace period.
for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)
  test(
    `process 1 of a container is ended by ${signal} before it serves, too`,
    { skip },
    async () => {
      const [program, ...words] = [...unshare, process.execPath, 'src/faces/cli/main.ts', 'serve'];
      const outer = spawn(program!, [...words, '-conf', 'stdin'], {
        stdio: ['pipe', 'pipe', 'pipe'],
      });
      const exited = once(outer, 'exit');
      const children = `/proc/${outer.pid}/task/${outer.pid}/children`;
      // The program waits for its input to end. Repeats the signal until the program handles it.
      for (let tries = 0; tries < 300 && outer.exitCode === null; tries++) {
        const child = Number(readFileSync(children, 'utf8'));
        try {
          if (child > 0) process.kill(child, signal);
        } catch {
          // The process has just ended.
        }
        await sleep(50);
      }
      outer.kill('SIGKILL');
      assert.deepEqual(await exited, [code, null]);
    },
  );
