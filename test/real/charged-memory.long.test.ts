/** The memory charged to a pod, which the kubelet reads from the pod's control group. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { freePorts } from '../kit/free-ports.ts';
import { MemoryGroup, noMemoryGroups } from '../kit/memory-group.ts';

/** MiB of files mapped by a process. */
const fileMiB = (pid: number): number =>
  Number(/^RssFile:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

const skip = noMemoryGroups() ?? false;

test('the first pod of a node keeps its working set when others start', { skip }, async (t) => {
  // A copy of the runtime that is not cached yet. It is on a disk, because files in a tmpfs are never reclaimed.
  const directory = mkdtempSync(resolve('node_modules/.ndots-charged-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const runtime = join(directory, 'node');
  cpSync(process.execPath, runtime);
  // The copy is in the file cache and charged to this test. The system can drop its pages once they have been written
  // to disk.
  assert.equal(await start('sync', ['sync', runtime]).exitCode, 0);
  const dropped = start('dd', ['dd', `if=${runtime}`, 'iflag=nocache', 'count=0']);
  assert.equal(await dropped.exitCode, 0);

  const children: Child[] = [];
  const serve = async (group: MemoryGroup): Promise<Child> => {
    const [port] = await freePorts(1);
    const file = join(directory, `Corefile-${port}`);
    writeFileSync(file, `.:${port} {\n bind 127.0.0.1\n whoami\n}\n`);
    const words = [runtime, '--max-semi-space-size=2', resolve('dist/faces/cli/main.js')];
    const child = start('ndots', group.words(...words, 'serve', '-conf', file));
    children.push(child);
    await printed(child, /^ndots-\d/m);
    const { pid } = child;
    // Wait until the pages that are only needed for startup have been unmapped.
    while (fileMiB(pid) > 40) await new Promise((done) => setTimeout(done, 100));
    return child;
  };
  const [first, other] = [new MemoryGroup(), new MemoryGroup()];
  t.after(async () => {
    for (const child of children) await child.stop();
    for (const group of [first, other]) group.close();
  });
  await serve(first);
  const before = first.charged();
  await (await serve(other)).stop();
  await (await serve(other)).stop();
  const { usage, workingSet } = first.charged();
  t.diagnostic(`${before.workingSet} MiB, then ${workingSet}, of ${usage} charged`);
  // Once the server ends, the code that it used while serving counts: 19 MiB. Including its startup code, it was 37.
  assert.ok(workingSet < before.workingSet + 28, `${before.workingSet} ${workingSet}`);
});
