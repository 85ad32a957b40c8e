/**
 * `ndots check serve --kuberhealthy` needs every permission in deploy/check/rbac.yaml, and names a missing one in its
 * log.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';

interface Rule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
type Role = KubeJson & { readonly rules: readonly Rule[] };

const deployed = (file: string): KubeJson[] =>
  parseAllDocuments(readFileSync(`deploy/check/${file}`, 'utf8')).map(
    (document) => document.toJS() as KubeJson,
  );
const roles = deployed('rbac.yaml').filter(({ kind }) => kind?.endsWith('Role') === true) as Role[];
const rights = roles.flatMap((role, at) =>
  role.rules.flatMap(({ resources, verbs }, index) =>
    verbs.map((verb) => ({ at, index, verb, resource: resources[0]! })),
  ),
);

const podSpec = { containers: [{ name: 'main', image: 'checker' }] };
const spec = { runInterval: '2s', timeout: '2s' };
const objects = [
  {
    apiVersion: 'kuberhealthy.github.io/v2',
    kind: 'HealthCheck',
    metadata: { name: 'new', namespace: 'team' },
    spec: { ...spec, podSpec: { spec: podSpec } },
  },
  {
    apiVersion: 'comcast.github.io/v1',
    kind: 'KuberhealthyCheck',
    metadata: { name: 'old', namespace: 'team' },
    spec: { ...spec, podSpec },
  },
  {
    apiVersion: 'kuberhealthy.github.io/v2',
    kind: 'HealthCheck',
    metadata: {
      name: 'own',
      namespace: 'team',
      annotations: { 'ndots.dev/checks': 'chekcs: []' },
    },
    spec,
  },
  ...['job', 'done'].map((name) => ({
    apiVersion: 'comcast.github.io/v1',
    kind: 'KuberhealthyJob',
    metadata: { name, namespace: 'team' },
    spec: { timeout: '2s', podSpec, ...(name === 'done' && { phase: 'Completed' }) },
  })),
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'new-ended',
      namespace: 'team',
      labels: { healthcheck: 'new', 'kh-run-uuid': 'ended' },
    },
    spec: podSpec,
    status: { phase: 'Succeeded' },
  },
  {
    apiVersion: 'comcast.github.io/v1',
    kind: 'KuberhealthyState',
    metadata: { name: 'orphan', namespace: 'team' },
    spec: {
      OK: true,
      Errors: [],
      RunDuration: '',
      Namespace: 'team',
      Node: '',
      AuthoritativePod: '',
      uuid: '',
    },
  },
] as unknown as KubeJson[];

describe('the rights of deploy/check', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  before(async () => {
    cluster = await Cluster.start();
    assert.deepEqual(await cluster.put(deployed('crds.yaml')), []);
    for (const name of ['kuberhealthy', 'team']) await cluster.kubectl('create', 'namespace', name);
    assert.deepEqual(await cluster.put(deployed('rbac.yaml')), []);
    await cluster.put(deployed('workload.yaml').filter(({ kind }) => kind === 'Service'));
    await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  async function serve(
    seen: RegExp,
    withinMs: number,
    kubeconfig = cluster.kubeconfig('kuberhealthy'),
  ): Promise<string> {
    const [port] = await freePorts(1);
    const words = ['check', 'serve', '--kuberhealthy', '--listen', `127.0.0.1:${port}`];
    words.push('--keep-completed', '0');
    const child = start('ndots', ['bin/ndots', ...words, '--kubeconfig', kubeconfig], {
      env: {
        ...process.env,
        POD_NAMESPACE: 'kuberhealthy',
        POD_NAME: `replica-${port}`,
        KH_MAX_JOB_AGE: '0s',
      },
    });
    const page = `http://127.0.0.1:${port}/api/events?namespace=team&healthcheck=new`;
    const asking = setInterval(() => void fetch(page).catch(() => undefined), 1000);
    try {
      await printed(child, seen, withinMs);
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
      return `${ready.status}\n${child.output()}`;
    } finally {
      clearInterval(asking);
      child.signal('SIGKILL');
      await child.exitCode;
    }
  }

  for (const { at, index, verb, resource } of rights)
    test(`${verb} of ${resource}`, async () => {
      const role = roles[at]!;
      const without = role.rules
        .map((rule, each) =>
          each === index ? { ...rule, verbs: rule.verbs.filter((other) => other !== verb) } : rule,
        )
        .filter(({ verbs }) => verbs.length > 0);
      await cluster.kubectl('delete', 'leases', '--all', '-n', 'kuberhealthy');
      await cluster.kubectl(
        'delete',
        'healthchecks,khchecks,khjobs,khstates',
        '--all',
        '-n',
        'team',
      );
      assert.deepEqual(await cluster.put([...objects, { ...role, rules: without } as Role]), []);
      if (resource === 'healthchecks' && verb === 'patch') await goingCheck();
      try {
        // Pods and states are cleaned up every 30 seconds.
        const text = `cannot ${verb} resource "${resource}"`;
        await serve(new RegExp(text), 60_000);
      } finally {
        await cluster.put([role]);
        const patch = ['--type=merge', '-p', '{"metadata": {"finalizers": []}}'];
        await cluster.kubectl('patch', 'healthcheck', 'new', '-n', 'team', ...patch);
      }
    });

  /** A check that is being deleted but still has Kuberhealthy's finalizer. */
  async function goingCheck(): Promise<void> {
    const patch = '{"metadata": {"finalizers": ["kuberhealthy.io/healthcheck"]}}';
    await cluster.kubectl('patch', 'healthcheck', 'new', '-n', 'team', '--type=merge', '-p', patch);
    await cluster.kubectl('delete', 'healthcheck', 'new', '-n', 'team', '--wait=false');
  }

  test('with a rejected token it is not ready, and reports that', async () => {
    const good = readFileSync(cluster.kubeconfig('kuberhealthy'), 'utf8');
    const file = `${cluster.kubeconfig('kuberhealthy')}.wrong`;
    writeFileSync(file, good.replace('token-of-kuberhealthy', 'token-of-nobody'));
    const text = await serve(/401 Unauthorized.*it may have expired/, 20_000, file);
    assert.match(text, /^503\n/);
  });
});
