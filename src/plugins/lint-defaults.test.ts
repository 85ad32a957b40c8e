import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { gather } from '../lint/gather.ts';
import { lint } from '../lint/lint.ts';
import { parseTarget } from '../lint/target.ts';
import { rules } from './lint-rules.ts';
import { directiveNames, external, loadPlugins } from './order.ts';

/** What is found in Corefiles as installers write them: each of these is so. */

async function found(name: string, target: string | null = null): Promise<string[]> {
  const { findings } = await lint({
    given: gather([`test/corefiles/${name.includes('/') ? name : `${name}.corefile`}`]),
    plugins: { directives: directiveNames, external, load: loadPlugins },
    rules,
    target: target === null ? null : parseTarget(target),
  });
  return findings
    .filter(({ spot }) => /\.(corefile|yaml)$/.test(spot.file))
    .map(({ code, severity, spot }) => `${severity} ${code} at ${spot.line}`);
}

describe('nothing but what is true is found in the Corefile of', () => {
  test('kubeadm: nothing', async () => assert.deepEqual(await found('kubeadm'), []));

  test('CoreDNS’s deployment repository: nothing', async () =>
    assert.deepEqual(await found('deployment'), []));

  test('EKS: its forward has no max_concurrent', async () =>
    assert.deepEqual(await found('eks'), ['warning CF10 at 12']));

  test('k3s: the same, and health has no lameduck', async () =>
    assert.deepEqual(await found('k3s'), ['warning CF18 at 3', 'warning CF10 at 20']));

  test('AKS: the same, and cache keeps denials of the cluster for 30 s', async () =>
    assert.deepEqual(await found('aks'), ['warning CF10 at 13', 'note CF15 at 14']));

  test('the Helm chart: the same', async () =>
    assert.deepEqual(await found('helm-chart'), ['warning CF10 at 13', 'note CF15 at 14']));

  test('OpenShift: no max_concurrent, and no loop before its resolv.conf', async () =>
    assert.deepEqual(await found('openshift'), ['warning CF10 at 4', 'warning CF04 at 31']));

  test('node-local-dns: no max_concurrent', async () =>
    assert.deepEqual(await found('node-local-dns'), ['warning CF10 at 10']));

  test('the manifest of CoreDNS as an add-on, with its variables: the notes of a default', async () =>
    assert.deepEqual(await found('manifests/coredns-addon.yaml'), [
      'note CF15 at 24',
      'note CF40 at 35',
    ]));

  test('the manifest of node-local-dns, with its variables', async () =>
    assert.deepEqual(await found('manifests/node-local-dns.yaml'), [
      'note CF35 at 18',
      'warning CF10 at 27',
    ]));

  test('what ndots itself is deployed with: nothing', async () =>
    assert.deepEqual(await found('../../deploy/', 'ndots'), []));

  for (const name of ['kubeadm', 'eks', 'aks', 'helm-chart', 'deployment'])
    test(`${name}, for ndots: no bound is missing`, async () =>
      assert.deepEqual(
        (await found(name, 'ndots')).filter((each) => !each.startsWith('note')),
        [],
      ));

  for (const name of ['kubeadm', 'k3s', 'eks', 'openshift', 'helm-chart', 'deployment'])
    test(`${name}, for CoreDNS 1.14.7: no word is unknown`, async () =>
      assert.deepEqual(
        (await found(name, 'coredns@1.14.7')).filter((each) => each.includes('CF01')),
        [],
      ));
});

describe('the stories are found', () => {
  test('autopath by the address of a pod, with a cache', async () =>
    assert.ok((await found('story-autopath')).includes('warning CF11 at 16')));

  test('force_tcp as a directive', async () =>
    assert.ok((await found('story-datadog-3')).includes('error CF01 at 8')));

  test('forward without cache', async () =>
    assert.ok((await found('story-datadog-2')).includes('warning CF50 at 7')));
});

test('the time is less than 300 ms of the processor, once the program is loaded', async () => {
  const text = readFileSync('test/corefiles/openshift.corefile', 'utf8');
  await found('openshift');
  const before = process.cpuUsage();
  const { findings } = await lint({
    given: { files: [{ file: 'Corefile', text: text.repeat(20), named: true }], passed: [] },
    plugins: { directives: directiveNames, external, load: loadPlugins },
    rules,
    target: null,
  });
  const { user } = process.cpuUsage(before);
  assert.ok(findings.length > 0);
  assert.ok(user < 300_000, `${user / 1000} ms`);
});
