/** Runs `ndots exec` as `kubectl ndots exec`, with a real API server and a minimal kubelet. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { Kubelet, NODE } from '../kit/kubelet.ts';

const reason = noApiServer() ?? (process.getuid?.() === 0 ? null : 'needs root, for namespaces');
const version = /"version": "([^"]+)"/.exec(
  await import('node:fs').then(({ readFileSync }) => readFileSync('package.json', 'utf8')),
)?.[1];

describe('ndots exec', { skip: reason ?? false }, () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-exec-'));
  let cluster: Cluster;
  let kubelet: Kubelet;
  let pod: Child;

  before(async () => {
    cluster = await Cluster.start();
    const labels = { app: 'web' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'a', image: 'a' }] } };
    await cluster.put([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace: 'shop' },
        spec: { selector: { matchLabels: labels }, template },
      },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web-0', namespace: 'shop', labels },
        spec: { ...template.spec, nodeName: NODE },
        status: { phase: 'Running' },
      },
    ] as unknown as KubeJson[]);
    // The pod is a separate network in which the cluster DNS is at 127.0.0.1.
    writeFileSync(
      join(directory, 'resolv.conf'),
      'nameserver 127.0.0.1\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n',
    );
    writeFileSync(
      join(directory, 'Corefile'),
      `.:53 {\n bind 127.0.0.1\n kubernetes cluster.local {\n manifests ${resolve('examples/cluster')}\n }\n}\n`,
    );
    const inside = 'ip link set lo up && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"';
    pod = start('pod', [
      ...['unshare', '-n', '-m', 'sh', '-c', inside, 'sh', join(directory, 'resolv.conf')],
      ...[resolve('bin/ndots'), 'serve', '-conf', join(directory, 'Corefile')],
    ]);
    await printed(pod, /^ndots-\d/m, 30_000);
    const enter = ['nsenter', '-t', String(pod.pid), '-n', '-m', resolve('bin/ndots')];
    kubelet = await Kubelet.start({
      cluster,
      namespace: 'shop',
      pod: 'web-0',
      command: ({ image, args = [] }) =>
        image === `ndots-tools:${version}` ? [...enter, ...args] : null,
    });
  });
  after(async () => {
    await kubelet?.[Symbol.asyncDispose]();
    await pod?.stop();
    await cluster?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  async function run(
    ...words: readonly string[]
  ): Promise<{ readonly code: number | null; readonly text: string }> {
    // The name under which kubectl finds its plugins.
    const plugin = join(directory, 'kubectl-ndots');
    rmSync(plugin, { force: true });
    symlinkSync(resolve('bin/ndots'), plugin);
    const child = start('kubectl ndots', [
      plugin,
      'exec',
      '--kubeconfig',
      cluster.kubeconfig('admin'),
      ...words,
    ]);
    const code = await child.exitCode;
    return { code, text: child.output() };
  }

  test('trace sees the lookup as the pod makes it, with its own resolv.conf and its own DNS', async () => {
    const traced = await run('web-0', '-n', 'shop', '--', 'trace', 'backend.critical-app');
    assert.equal(traced.code, 0, traced.text);
    assert.match(traced.text, /container ndots-\w+ of pod shop\/web-0/);
    assert.match(traced.text, /backend\.critical-app\.shop\.svc\.cluster\.local/);
    assert.match(traced.text, /backend\.critical-app\.svc\.cluster\.local/);
    assert.deepEqual(kubelet.containers.at(-1)?.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      runAsUser: 65_532,
      runAsGroup: 65_532,
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  });

  test('a pod of a Deployment is found; the exit code is that of the verb', async () => {
    const checked = await run(
      'deploy/web',
      '-n',
      'shop',
      '--',
      'check',
      'run',
      '--only',
      'negative',
    );
    assert.equal(checked.code, 0, checked.text);
    const missing = await run('deploy/web', '-n', 'shop', '--', 'trace', 'not-there');
    assert.equal(missing.code, 1, missing.text);
  });

  test('a permission is granted where needed', async () => {
    await run('web-0', '-n', 'shop', '--capability', 'net_raw', '--', 'version');
    const { securityContext } = kubelet.containers.at(-1)!;
    assert.deepEqual((securityContext as { capabilities: object }).capabilities, {
      add: ['NET_RAW'],
      drop: ['ALL'],
    });
  });

  for (const [what, words, wanted, code] of [
    [
      'an image that is not there',
      ['web-0', '-n', 'shop', '--image', 'nowhere', '--', 'version'],
      /nowhere does not start in pod web-0: ErrImagePull[^]*nowhere: not found[^]*--image/,
      2,
    ],
    ['a pod that is not there', ['gone', '-n', 'shop', '--', 'version'], /no Pod "gone"/, 2],
    ['a verb that is not there', ['web-0', '--', 'trase', 'a'], /Did you mean 'trace'\?/, 3],
    ['a command without a verb', ['web-0'], /exec needs a command/, 3],
  ] as const)
    test(`${what} is reported`, async () => {
      const found = await run(...words);
      assert.match(found.text, wanted);
      assert.equal(found.code, code);
    });

  test('missing permissions are reported', async () => {
    const rule = (resources: string[], verbs: string[]): object => ({
      apiGroups: [''],
      resources,
      verbs,
    });
    const rights = [
      rule(['pods'], ['get']),
      rule(['pods/log'], ['get']),
      rule(['pods/ephemeralcontainers'], ['patch']),
    ];
    const role = { kind: 'Role', metadata: { name: 'exec', namespace: 'shop' } };
    const api = 'rbac.authorization.k8s.io';
    await cluster.put([
      { apiVersion: `${api}/v1`, ...role, rules: rights },
      {
        apiVersion: `${api}/v1`,
        kind: 'RoleBinding',
        metadata: role.metadata,
        roleRef: { apiGroup: api, kind: 'Role', name: 'exec' },
        subjects: [{ apiGroup: api, kind: 'User', name: 'jane' }],
      },
    ] as unknown as KubeJson[]);
    const words = ['web-0', '-n', 'shop', '--as', 'jane', '--', 'version'];
    const all = await run(...words);
    assert.equal(all.code, 0, all.text);
    for (const [nth, missing] of ['pods', 'pods/log', 'pods/ephemeralcontainers'].entries()) {
      const rules = rights.filter((_, each) => each !== nth);
      await cluster.put([{ apiVersion: `${api}/v1`, ...role, rules } as unknown as KubeJson]);
      const { code, text } = await run(...words);
      assert.equal(code, 2, text);
      assert.match(text, new RegExp(`forbidden|Forbidden`), missing);
      assert.match(text, new RegExp(missing.replace('/', '[/ ]')));
    }
  });
});
