import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { processesIn } from './control-group.ts';
import { nodeDirectory, nodeRecords, removeLeftovers } from './leftovers.ts';
import { noNode } from './node-programs.ts';
import { changedOutside, networkOutside } from './node-space.ts';
import { until } from './progress.ts';

/** The milliseconds that a cluster may take to start on a busy machine, once its programs and images are built. */
const STARTS_MS = 600_000;

/** Titles of runs, with the modules and expressions that start their nodes. */
const runs = [
  ['only namespaces', 'node-space.ts', 'NodeSpace.make()'],
  ["this machine's process namespace", 'node-space.ts', "NodeSpace.make('machine')"],
  ['a whole cluster', 'node-cluster.ts', 'NodeCluster.start()'],
] as const;

describe('a killed run', { skip: noNode() ?? false }, () => {
  for (const [title, module, made] of runs)
    test(`${title}: its processes end with it, and the next run removes its groups and files but no others`, async () => {
      const outside = networkOutside();
      const others = nodeRecords().map(({ id }) => id);
      const file = join(import.meta.dirname, module);
      const script = `const { NodeSpace, NodeCluster } = await import(${JSON.stringify(file)});
        const node = await ${made};
        void (node.space ?? node).run(['sleep', '1000']);
        console.log('started');
        setInterval(() => {}, 1000);`;
      const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      let printed = '';
      run.stdout.on('data', (data: Buffer) => (printed += data.toString()));
      const ended = new Promise((done) => run.on('exit', done));
      await until(
        'the other run to start its node',
        () => {
          assert.equal(run.exitCode, null, 'the other run failed');
          return printed.includes('started') ? null : 'not yet';
        },
        STARTS_MS,
      );
      const node = nodeRecords().find(
        ({ id, owner }) => !others.includes(id) && owner.pid === run.pid,
      )!;
      assert.ok(processesIn(node.groups).length > 2);
      run.kill('SIGKILL');
      await ended;
      await until('the processes of the killed run to end', () => {
        const left = processesIn(node.groups);
        return left.length === 0 ? null : `${left.length} processes`;
      });
      assert.ok(node.groups.every((group) => existsSync(group)));
      await removeLeftovers();
      assert.deepEqual(
        [...node.groups, nodeDirectory(node.id)].filter((each) => existsSync(each)),
        [],
      );
      assert.deepEqual(
        nodeRecords().map(({ id }) => id),
        others,
      );
      assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(node.id));
      assert.deepEqual(changedOutside(outside), []);
    });
});
