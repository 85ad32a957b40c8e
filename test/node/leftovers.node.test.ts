import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { processesIn } from './control-group.ts';
import { nodeRecords, removeLeftovers } from './leftovers.ts';
import { noNode } from './node-programs.ts';
import { interfacesOutside } from './node-space.ts';
import { until } from './progress.ts';

describe('a killed run', { skip: noNode() ?? false }, () => {
  test('its processes end with it, and the next run removes its groups and files but no others', async () => {
    const outside = interfacesOutside();
    const others = nodeRecords().map(({ id }) => id);
    const script = `const { NodeSpace } = await import(${JSON.stringify(join(import.meta.dirname, 'node-space.ts'))});
      const space = await NodeSpace.make();
      void space.run(['sleep', '1000']);
      setInterval(() => {}, 1000);`;
    const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: 'inherit',
    });
    const made = () =>
      nodeRecords().find(({ id, owner }) => !others.includes(id) && owner.pid === run.pid);
    await until('the other run to have a node', () =>
      processesIn(made()?.groups ?? []).length > 3 ? null : 'none',
    );
    const node = made()!;
    const ended = new Promise((done) => run.on('exit', done));
    run.kill('SIGKILL');
    await ended;
    await until('the processes of the killed run to end', () =>
      processesIn(node.groups).length === 0 ? null : 'some run',
    );
    assert.ok(node.groups.every((group) => existsSync(group)));
    await removeLeftovers();
    assert.deepEqual(
      node.groups.filter((group) => existsSync(group)),
      [],
    );
    assert.deepEqual(
      nodeRecords().map(({ id }) => id),
      others,
    );
    assert.equal(outside, interfacesOutside());
  });
});
