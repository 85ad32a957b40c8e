/** CF59: readiness has to fail within lameduck, both in Deployments and in chart values. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { lintTexts } from '../../../../test/kit/lint-text.ts';
import { failsWithin, quickReadiness, unreadySeconds } from '../readiness.ts';

const health = (lameduck: string): string =>
  `.:53 {\n    health {\n        lameduck ${lameduck}\n    }\n    ready\n    kubernetes cluster.local\n}\n`;

const deployment = (probe: object | null): string =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'coredns', namespace: 'kube-system' },
    spec: {
      replicas: 2,
      template: {
        spec: {
          containers: [
            {
              name: 'coredns',
              image: 'registry.k8s.io/coredns/coredns:v1.14.7',
              ...(probe === null ? {} : { readinessProbe: probe }),
            },
          ],
        },
      },
    },
  });

const ready = (more: object): object => ({ httpGet: { path: '/ready', port: 8181 }, ...more });

async function told(files: Readonly<Record<string, string>>) {
  const { findings } = await lintTexts({ files });
  return findings.filter(({ code }) => code === 'CF59');
}

describe('readiness that fails later than lameduck ends', () => {
  const cases: readonly (readonly [
    what: string,
    lameduck: string,
    probe: object | null,
    text: RegExp | null,
  ])[] = [
    ['Kubernetes’s defaults', '5s', ready({}), /up to 30 s after SIGTERM.*ends after 5 s/],
    ['a probe that fails in time', '5s', ready({ periodSeconds: 2, failureThreshold: 1 }), null],
    ['only the period', '5s', ready({ periodSeconds: 1 }), null],
    ['only the threshold', '5s', ready({ failureThreshold: 1 }), /up to 10 s/],
    ['no time left for the nodes', '5s', ready({ periodSeconds: 5, failureThreshold: 1 }), /5 s/],
    ['a long lameduck', '31s', ready({}), null],
    ['lameduck in milliseconds', '4500ms', ready({ failureThreshold: 1 }), /ends after 4.5 s/],
    ['a probe of the socket', '60s', { tcpSocket: { port: 53 } }, /tcpSocket/],
    ['no lameduck: CF18 reports it', '0s', ready({}), null],
    ['no probe: CF17 reports it', '5s', null, null],
    ['a probe of /health: CF17', '5s', { httpGet: { path: '/health', port: 8080 } }, null],
  ];
  for (const [what, lameduck, probe, text] of cases)
    test(what, async () => {
      const files = { Corefile: health(lameduck), 'coredns.yaml': deployment(probe) };
      const found = await told(files);
      assert.equal(found.length, text === null ? 0 : 1, JSON.stringify(found));
      if (text !== null) assert.match(found[0]!.text, text);
    });

  test('chart values are judged by the settings that they give', async () => {
    const values = (probe: object): object => ({
      readinessProbe: probe,
      servers: [
        {
          zones: [{ zone: '.' }],
          port: 53,
          plugins: [
            { name: 'health', configBlock: 'lameduck 5s' },
            { name: 'ready' },
            { name: 'kubernetes', parameters: 'cluster.local' },
          ],
        },
      ],
    });
    const judged = async (probe: object): Promise<readonly string[]> =>
      (await told({ 'values.yaml': JSON.stringify(values(probe)) })).map(({ text }) => text);
    assert.deepEqual(await judged({}), []);
    assert.deepEqual(await judged({ enabled: false, periodSeconds: 10 }), []);
    assert.match((await judged({ failureThreshold: 5 }))[0]!, /up to 25 s/);
    assert.match((await judged({ periodSeconds: 10 }))[0]!, /up to 10 s/);
    const part = JSON.stringify({ coredns: values({ failureThreshold: 3 }) });
    assert.match((await told({ 'values.yaml': part }))[0]!.text, /up to 15 s/);
  });

  test('the settings that are proposed hold for every lameduck that any can hold for', () => {
    for (let ms = 0; ms <= 120_000; ms += 250) {
      const quick = quickReadiness(ms);
      if (quick === null) assert.ok(!failsWithin(2, ms), `${ms} ms`);
      else assert.ok(failsWithin(unreadySeconds(quick), ms), `${ms} ms`);
    }
  });

  const kubectl = process.env['KUBECTL'] ?? 'kubectl';
  const skip =
    spawnSync(kubectl, ['version', '--client']).status === 0 ? false : 'needs kubectl (KUBECTL)';

  test('kubectl applies the patch, and then nothing is found', { skip }, async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-patch-'));
    try {
      const [found] = await told({ Corefile: health('5s'), 'd.yaml': deployment(ready({})) });
      const [, patch = ''] = /^kubectl -n kube-system patch deployment coredns -p '(.*)'$/.exec(
        found!.remedy!,
      )!;
      const file = join(directory, 'd.yaml');
      writeFileSync(file, deployment(ready({})));
      const words = ['patch', '--local', '-f', file, '-o', 'yaml', '-p', patch];
      const { stdout, stderr } = spawnSync(kubectl, words, { encoding: 'utf8' });
      assert.equal(stderr, '');
      const patched = parse(stdout) as ReturnType<typeof JSON.parse>;
      const [{ readinessProbe }] = patched.spec.template.spec.containers;
      assert.deepEqual(readinessProbe, ready({ periodSeconds: 2, failureThreshold: 1 }));
      assert.deepEqual(await told({ Corefile: health('5s'), 'd.yaml': stdout }), []);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

test('what deploy/ installs fails within its lameduck', async () => {
  const read = (file: string): string => readFileSync(`deploy/${file}`, 'utf8');
  const manifests = {
    Corefile: read('cluster-dns/Corefile'),
    'd.yaml': read('kubeadm/ndots.yaml'),
  };
  assert.deepEqual(await told(manifests), []);
  assert.deepEqual(await told({ 'values.yaml': read('helm/ndots/values.yaml') }), []);
});
