import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { after, describe, test } from 'node:test';
import { noLab, runLabIn, traces } from '../kit/lab.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-lab-test-'));
after(() => rmSync(directory, { recursive: true }));

describe('a persistent lab', { skip: noLab ?? false }, () => {
  const env = { TMPDIR: directory };

  test('a killed one does not block another', async () => {
    const before = traces();
    assert.equal((await runLabIn(env, 'up')).code, 0);
    const [state] = globSync(join(directory, 'ndots-lab-*', 'lab.json'));
    process.kill((JSON.parse(readFileSync(state!, 'utf8')) as { pid: number }).pid, 'SIGKILL');
    await sleep(300);
    assert.equal(traces(), before);
    const again = await runLabIn(env, 'up');
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await runLabIn(env, 'down')).code, 0);
    assert.equal(traces(), before);
  });

  test('manifests and Corefiles with mistakes are reported, and leave no lab running', async () => {
    const [bad, corefile] = [join(directory, 'bad.yaml'), join(directory, 'Corefile')];
    writeFileSync(
      bad,
      'kind: Service\napiVersion: v1\nmetadata: { name: x }\nspec: { ports: 7 }\n',
    );
    const manifests = await runLabIn(env, 'up', '-f', bad);
    assert.equal(manifests.code, 2);
    assert.match(manifests.stderr, /bad\.yaml:\d+/);
    writeFileSync(corefile, '.:53 {\n    kuberntes cluster.local\n}\n');
    const served = await runLabIn(env, 'up', '--corefile', corefile);
    assert.equal(served.code, 2);
    assert.match(
      served.stderr,
      /the DNS server in kube-system\/coredns[^]*Unknown directive 'kuberntes'/,
    );
    assert.match((await runLabIn(env, 'down')).stdout, /No lab stands/);
  });
});
