/**
 * `ndots doctor cluster` with a real API server and the permissions that `--rbac` prints. Together they suffice, and
 * each one is needed.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAllDocuments, stringify } from 'yaml';
import { doctor } from '../../src/faces/cli/doctor/doctor.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { usualCorefile, type Examined } from '../kit/living-cluster.ts';
import { runCommand } from '../kit/trace-command.ts';

interface Role extends KubeJson {
  readonly rules: readonly { apiGroups: string[]; resources: string[]; verbs: string[] }[];
}

const ACCOUNT = 'system:serviceaccount:kube-system:ndots-doctor';

const labels = { 'k8s-app': 'kube-dns' };
const objects = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns', namespace: 'kube-system' },
    data: { Corefile: usualCorefile },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'kube-dns', namespace: 'kube-system', labels },
    spec: {
      clusterIP: '10.0.0.10',
      ipFamilies: ['IPv4'],
      selector: labels,
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53, protocol: 'TCP' },
      ],
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'coredns-0', namespace: 'kube-system', labels },
    spec: {
      nodeName: 'node-a',
      containers: [{ name: 'coredns', image: 'registry.k8s.io/coredns/coredns:v1.14.7' }],
    },
    status: {
      phase: 'Running',
      podIP: '10.44.0.5',
      podIPs: [{ ip: '10.44.0.5' }],
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  },
] as unknown as readonly KubeJson[];

/** Creating a review only queries a permission and does not store anything. */
const REVIEWS = 'subjectaccessreviews';

describe('ndots doctor cluster on a real API server', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  let rights: readonly KubeJson[];

  const run = async (...words: string[]): ReturnType<typeof runCommand> =>
    runCommand(doctor, [...words, '--kubeconfig', cluster.kubeconfig('admin'), '--as', ACCOUNT]);
  const examine = async (): Promise<Examined> => {
    const usual = ['-o', 'json', '--for', '10ms', '--timeout', '100ms', '-q'];
    const { out, err } = await run('cluster', ...usual);
    if (out === '') throw new Error(err);
    return JSON.parse(out) as Examined;
  };

  before(async () => {
    cluster = await Cluster.start();
    const { out } = await run('--rbac');
    rights = parseAllDocuments(out).map((document) => document.toJS() as KubeJson);
    assert.deepEqual(await cluster.put(objects), []);
  });
  after(async () => cluster?.[Symbol.asyncDispose]());

  test('without permissions, it reports the missing ones', async () => {
    const { code, err } = await run('cluster', '-q');
    assert.equal(code, 2);
    assert.match(err, /forbidden/i);
    assert.match(err, /--rbac/);
  });

  test('with the permissions from --rbac, everything is read', async () => {
    await cluster.kubectlWith(
      rights.map((each) => stringify(each)).join('---\n'),
      'apply',
      '-f',
      '-',
    );
    let { cluster: about, findings } = await examine();
    // The API server learns of permissions through its own watch.
    for (let tries = 0; tries < 10 && about.lacking.length > 0; tries++) {
      await sleep(200);
      ({ cluster: about, findings } = await examine());
    }
    assert.deepEqual(about.lacking, []);
    assert.ok(
      findings.every(({ severity }) => severity !== 'critical') || findings[0]!.code === 'ND5003',
    );
  });

  // Other users' access is only reviewed if a DNS pod is not ready. test/node/tools.node.test.ts covers that.
  test('each right to read is used: without it something is reported as missing', async () => {
    for (const role of rights.filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole')) {
      const { rules } = role as Role;
      for (const [nth, rule] of rules.entries())
        for (const resource of rule.resources) {
          if (resource === REVIEWS) continue;
          const less = rules.map((each, at) =>
            at === nth
              ? { ...each, resources: each.resources.filter((one) => one !== resource) }
              : each,
          );
          const kept = less.filter(({ resources }) => resources.length > 0);
          await cluster.kubectlWith(stringify({ ...role, rules: kept }), 'replace', '-f', '-');
          const { cluster: about } = await examine();
          assert.ok(
            about.lacking.some(({ why }) => why.includes(resource)),
            `${resource}: ${JSON.stringify(about.lacking)}`,
          );
        }
      await cluster.kubectlWith(stringify(role), 'replace', '-f', '-');
    }
  });

  test('nothing is changed: the rights are to list, to get metrics, and to review access', () => {
    const rules = rights.flatMap((each) => (each as Partial<Role>).rules ?? []);
    const [reviews, others] = [true, false].map((isReview) =>
      rules.filter(({ resources }) => resources.includes(REVIEWS) === isReview),
    );
    assert.deepEqual(
      reviews!.map(({ resources, verbs }) => [resources, verbs]),
      [[[REVIEWS], ['create']]],
    );
    const verbs = new Set(others!.flatMap((rule) => rule.verbs));
    assert.deepEqual([...verbs].toSorted(), ['get', 'list']);
  });
});
