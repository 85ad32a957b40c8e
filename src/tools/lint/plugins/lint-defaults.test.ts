import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { gather } from '../gather.ts';
import { lint } from '../lint.ts';
import { parseTarget } from '../target.ts';
import { rules } from './lint-rules.ts';
import { directiveNames, external, loadPlugins } from '../../../server/plugins/order.ts';

/** The findings for Corefiles written by installers, all of which are correct. */

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

  const withCore: readonly [file: string, what: string, ...ndots: string[]][] = [
    ['eks', 'EKS: its forward has no max_concurrent'],
    ['k3s', 'k3s: the same, and health has no lameduck', 'warning CF18 at 3'],
    ['aks', 'AKS: the same, and cache keeps denials of the cluster for 30 s', 'note CF15 at 14'],
    ['helm-chart', 'the Helm chart: the same', 'note CF15 at 14'],
    [
      'openshift',
      'OpenShift: no max_concurrent, and no loop before its resolv.conf',
      'warning CF04 at 31',
    ],
    ['node-local-dns', 'node-local-dns: no max_concurrent'],
  ];
  const unbounded: Readonly<Record<string, number>> = {
    eks: 12,
    k3s: 20,
    aks: 13,
    'helm-chart': 13,
    openshift: 4,
    'node-local-dns': 10,
  };
  for (const [file, what, ...ndots] of withCore)
    test(what, async () => {
      const core = [`warning CF10 at ${unbounded[file]}`, ...ndots];
      assert.deepEqual((await found(file, 'coredns')).toSorted(), core.toSorted());
      assert.deepEqual(await found(file), ndots);
    });

  test('the manifest of CoreDNS as an add-on, with its variables: the notes of a default', async () =>
    assert.deepEqual(await found('manifests/coredns-addon.yaml'), [
      'note CF15 at 24',
      'note CF40 at 35',
      'warning CF59 at 51',
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

test('the time grows with the length of a Corefile, not with its square', async () => {
  const text = readFileSync('test/corefiles/openshift.corefile', 'utf8');
  const looked = async (times: number): Promise<void> => {
    const { findings } = await lint({
      given: { files: [{ file: 'Corefile', text: text.repeat(times), named: true }], passed: [] },
      plugins: { directives: directiveNames, external, load: loadPlugins },
      rules,
      target: null,
    });
    assert.ok(findings.length > 0);
  };
  await costsAtMost(
    24,
    () => looked(40),
    () => looked(5),
  );
});
