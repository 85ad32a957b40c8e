import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../../../../test/kit/apiserver/store.ts';
import { clusterFaults } from '../../../../test/kit/cluster-faults.ts';
import { clientPod, LivingCluster, REPLICAS, VIP } from '../../../../test/kit/living-cluster.ts';
import { pcapFile } from '../../../../test/kit/packets.ts';
import { stories } from '../../../../test/kit/stories.ts';
import { LINK } from '../../../tools/capture/read/packets/frame.ts';

/** An object printed by `--rbac`. */
interface RbacObject {
  readonly kind: string;
  readonly rules?: readonly {
    readonly apiGroups: readonly [string];
    readonly resources: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/**
 * Examines a running cluster. If it is healthy, there are no findings. If it has one fault, that is the first finding.
 */

describe('ndots doctor cluster', () => {
  test('finds nothing wrong with a healthy cluster, and lists the causes that are ruled out', async () => {
    await using cluster = await LivingCluster.start();
    const found = await cluster.examine();
    assert.deepEqual(found.findings, []);
    assert.deepEqual(found.cluster.lacking, []);
    assert.equal(found.code, 0);
    // Only two things remain unchecked: counters, which need traffic, and connection tracking, which not every machine
    // has.
    const open = found.unknown.map(({ code }) => code);
    const usual = ['ND4002', 'ND4003', 'ND2001', 'ND3003'];
    assert.deepEqual(
      open.filter((code) => !usual.includes(code)),
      [],
    );
    assert.ok(found.not.length >= 28, String(found.not.length));
  });

  test('a cluster with only IPv6 services is queried for AAAA over TCP and with EDNS', async () => {
    const closed = { tcp: 'closed' } as const;
    for (const servers of [{}, { [REPLICAS[0]!]: closed }]) {
      await using cluster = await LivingCluster.start({
        servers,
        objects(objects) {
          const own = objects
            .get('services')
            ?.find(({ metadata }) => metadata.name === 'kubernetes');
          const addresses = { clusterIP: 'fd00::1', clusterIPs: ['fd00::1'] };
          Object.assign(own?.['spec'] as object, addresses);
        },
      });
      const { findings, not, unknown } = await cluster.examine();
      const found = Object.keys(servers).length > 0 ? ['ND3011'] : [];
      assert.deepEqual(
        findings.map(({ code }) => code),
        found,
        JSON.stringify(unknown),
      );
      const reasons = not.map(({ reason }) => reason).join('\n');
      if (found.length === 0) {
        assert.match(reasons, /answer over TCP/);
        assert.match(reasons, /replies of all sizes arrive/);
      }
    }
  });

  for (const [what, { code, slow = false, ...fault }] of Object.entries(clusterFaults)) {
    if (slow) continue;
    test(`${what}: ${code}`, async () => {
      await using cluster = await LivingCluster.start(fault);
      const { findings, unknown } = await cluster.examine();
      const told = findings.map((each) => `${each.code} ${each.severity} ${each.seen.join(' ')}`);
      assert.equal(findings[0]?.code, code, `${told.join('\n')}\n${JSON.stringify(unknown)}`);
    });
  }
});

test('a process that only waits between two samples still finishes', async () => {
  await using cluster = await LivingCluster.start();
  const words = [
    'doctor',
    'cluster',
    '--kubeconfig',
    cluster.kubeconfig(),
    '--for',
    '6s',
    '-o',
    'json',
  ];
  const program = spawn(process.execPath, ['src/faces/cli/main.ts', ...words]);
  let out = '';
  program.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  const code = await new Promise((ended) => program.on('close', ended));
  assert.equal(code, 0);
  assert.deepEqual((JSON.parse(out) as { findings: unknown[] }).findings, []);
});

describe('with fewer rights', () => {
  const forbid = (cluster: LivingCluster, ...resources: readonly string[]): void => {
    for (const resource of resources)
      cluster.api.faults.add({
        resource,
        fault: { kind: 'status', status: 403, reason: 'Forbidden' },
      });
  };

  test('a list that is forbidden is reported once, with the missing verdicts', async () => {
    await using cluster = await LivingCluster.start();
    forbid(cluster, 'networkpolicies', 'nodes', 'horizontalpodautoscalers');
    const { findings, cluster: about, unknown, not } = await cluster.examine();
    assert.deepEqual(findings, []);
    assert.deepEqual(about.lacking.map(({ so }) => so).toSorted(), [
      'whether there may be more DNS pods',
      'which nodes the DNS pods run on',
      'which pods may query DNS',
    ]);
    assert.ok(unknown.some(({ code }) => code === 'ND3004'));
    assert.ok(unknown.some(({ code }) => code === 'ND7003'));
    assert.ok(not.some(({ code }) => code === 'ND3008'));
    const { out } = await cluster.run('cluster', '--for', '10ms', '--timeout', '400ms');
    assert.equal(out.match(/which pods may query DNS: .*403 Forbidden/g)?.length, 1);
  });

  test('the pods of one namespace do not show the settings of others', async () => {
    await using cluster = await LivingCluster.start();
    cluster.api.faults.add({
      resource: 'pods',
      // The request for the whole cluster, which is followed by requests for the DNS pods' namespace.
      times: 1,
      fault: { kind: 'status', status: 403, reason: 'Forbidden' },
    });
    const { unknown, not } = await cluster.examine();
    assert.ok(unknown.some(({ code }) => code === 'ND2007'));
    assert.ok(not.some(({ code }) => code === 'ND3008'));
  });

  test('without the Corefile, replicas are still queried', async () => {
    await using cluster = await LivingCluster.start();
    forbid(cluster, 'configmaps');
    const { findings, unknown, not } = await cluster.examine();
    assert.deepEqual(findings, []);
    assert.ok(unknown.some(({ code }) => code === 'ND1001' || code === 'ND4005'));
    assert.ok(not.some(({ code }) => code === 'ND8001'));
  });

  test('a missing right is reported as the reason why a DNS pod is not ready', async () => {
    const notReady = (objects: Map<string, KubeJson[]>): void => {
      for (const pod of objects.get('pods') ?? []) {
        if (!pod.metadata.name.startsWith('coredns-')) continue;
        pod['spec'] = { ...(pod['spec'] as object), serviceAccountName: 'coredns' };
        pod['status'] = {
          ...(pod['status'] as object),
          conditions: [{ type: 'Ready', status: 'False' }],
        };
      }
    };
    await using cluster = await LivingCluster.start({ objects: notReady });
    const asked: string[] = [];
    cluster.api.denied = (user, verb, resource) => {
      asked.push(`${user} ${verb} ${resource}`);
      return resource === 'endpointslices';
    };
    const found = (await cluster.examine()).findings.find(({ code }) => code === 'ND5002')!;
    const text = JSON.stringify(found);
    const rights = 'list endpointslices.discovery.k8s.io, watch endpointslices.discovery.k8s.io';
    assert.match(
      text,
      new RegExp(`system:serviceaccount:kube-system:coredns is not allowed to ${rights}`),
    );
    assert.match(text, /ClusterRoleBinding/);
    assert.equal(asked.length, 6);
    cluster.api.denied = () => false;
    const other = (await cluster.examine()).findings.find(({ code }) => code === 'ND5002')!;
    assert.doesNotMatch(JSON.stringify(other), /is not allowed to|ClusterRoleBinding/);
  });

  test('an API server that forbids everything leads to a list of the required rights', async () => {
    await using cluster = await LivingCluster.start();
    cluster.api.faults.add({ fault: { kind: 'status', status: 403, reason: 'Forbidden' } });
    const { code, out, err } = await cluster.run('cluster');
    assert.equal(code, 2);
    assert.equal(out, '');
    assert.match(err, /403 Forbidden/);
    assert.match(err, /--rbac prints the permissions/);
  });

  test('without metrics, replies are still judged, and the missing metrics are reported', async () => {
    await using cluster = await LivingCluster.start({
      objects(objects) {
        for (const pod of objects.get('pods') ?? []) {
          const spec = pod['spec'] as { containers: { ports?: object[] }[] };
          delete spec.containers[0]?.ports;
        }
      },
      corefile: '.:10053 {\n    errors\n    kubernetes cluster.local\n}\n',
    });
    const { findings, unknown } = await cluster.examine();
    assert.deepEqual(
      findings.filter(({ severity }) => severity === 'critical'),
      [],
    );
    assert.ok(unknown.some(({ code, reason }) => code === 'ND5004' && /metrics/.test(reason)));
  });

  test('metrics are read through the API server if pods are unreachable, and no server is queried', async () => {
    await using cluster = await LivingCluster.start({
      servers: Object.fromEntries(
        [...REPLICAS, VIP].map((address) => [address, { closed: true, hidden: true }]),
      ),
    });
    cluster.api.proxied = () => 'coredns_panics_total 2\n';
    const { findings, cluster: about, unknown } = await cluster.examine();
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['ND5004'],
    );
    assert.equal(about.asked, false);
    assert.ok(unknown.some(({ code, reason }) => code === 'ND3005' && /pod network/.test(reason)));
  });

  test('a namespace without DNS is not a healthy cluster', async () => {
    await using cluster = await LivingCluster.start();
    const { code, out, err } = await cluster.run('cluster', '-n', 'openshift-dns');
    assert.equal(code, 2);
    assert.equal(out, '');
    assert.match(err, /no DNS Service and no DNS pod in namespace openshift-dns/);
  });

  test('--rbac prints objects that grant the listed rights', async () => {
    await using cluster = await LivingCluster.start();
    const { out, code } = await cluster.run('--rbac', '-n', 'kube-system');
    assert.equal(code, 0);
    const objects = parseAllDocuments(out).map((document) => document.toJS() as RbacObject);
    assert.deepEqual(
      objects.map(({ kind }) => kind),
      ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
    );
    const granted = objects.flatMap(({ kind, rules = [] }) =>
      rules
        .filter(({ verbs }) => verbs.includes('list'))
        .flatMap(({ apiGroups: [group], resources }) =>
          resources.map((plural) => `${kind === 'Role' ? 'kube-system ' : ''}${group}/${plural}`),
        ),
    );
    await cluster.examine();
    const listed = cluster.api.seen
      .filter(({ verb }) => verb === 'list')
      .map(({ path }) => {
        const [, group = '', own = '', plural = ''] =
          /^\/apis?(?:\/([a-z0-9.]+\.[a-z0-9.]+|apps|policy|autoscaling))?\/v\d(?:\/namespaces\/([^/]+))?\/([a-z]+)$/.exec(
            path,
          ) ?? [];
        return `${own === '' ? '' : `${own} `}${group}/${plural}`;
      });
    // A right that applies to all namespaces covers each of them.
    const needed = [...new Set(listed)].filter(
      (right) => !right.startsWith('kube-system ') || !listed.includes(right.split(' ')[1]!),
    );
    assert.deepEqual(granted.toSorted(), needed.toSorted());
  });
});

describe('a hostile or large cluster', () => {
  test('endless metrics are abandoned, and the rest is judged', async () => {
    await using cluster = await LivingCluster.start({
      servers: { [REPLICAS[0]!]: { endless: true } },
    });
    const before = process.memoryUsage().rss;
    const { findings } = await cluster.examine();
    assert.deepEqual(findings, []);
    assert.ok(process.memoryUsage().rss - before < 300 * 1024 * 1024);
  });

  for (const [what, reply] of [
    ['garbage', (): Buffer => Buffer.from('not a message of DNS, but longer than its head')],
    [
      'the reply to another question',
      (right: Buffer): Buffer => Buffer.concat([right.subarray(0, 12), Buffer.alloc(30)]),
    ],
    ['half of a reply', (right: Buffer): Buffer => right.subarray(0, right.length >> 1)],
  ] as const)
    test(`a replica that sends ${what} counts as one that does not answer`, async () => {
      await using cluster = await LivingCluster.start({ servers: { [REPLICAS[1]!]: { reply } } });
      const { findings } = await cluster.examine();
      assert.equal(findings[0]?.code, 'ND3008');
    });

  test('5 000 pods are read page by page, and the number of other settings is reported', async () => {
    await using cluster = await LivingCluster.start({
      objects(objects) {
        const more = Array.from({ length: 5000 }, (_, nth) =>
          clientPod(`team-${nth % 50}`, `app-${nth % 1000}`, nth, { hostNetwork: nth % 7 === 0 }),
        );
        objects.get('pods')!.push(...more);
      },
    });
    const { findings, cluster: about } = await cluster.examine();
    assert.deepEqual(
      findings.filter(({ severity }) => severity === 'critical'),
      [],
    );
    assert.equal(about.pods, 5004);
    assert.deepEqual(
      about.lacking.map(({ so }) => so),
      ['kinds of clients with their own DNS settings after the first 500'],
    );
    const pages = cluster.api.requests('list', 'pods').length;
    assert.ok(pages >= 10 && pages <= 50, `${pages} requests`);
  });

  test('an API server that sends garbage or closes connections', async () => {
    await using cluster = await LivingCluster.start();
    const lift = cluster.api.faults.add({ fault: { kind: 'garbage' } });
    assert.equal((await cluster.run('cluster')).code, 2);
    lift();
    cluster.api.faults.add({ fault: { kind: 'drop' } });
    const { code, err } = await cluster.run('cluster');
    assert.equal(code, 2);
    assert.match(err, /dropped the connection/);
  });
});

test('a capture and a cluster give one diagnosis: a fault shown by both is one finding', async () => {
  await using cluster = await LivingCluster.start(clusterFaults['TCP that is closed']);
  const story = stories.find(({ code }) => code === 'ND3011')!;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-both-'));
  const file = join(directory, 'tcp.pcap');
  writeFileSync(file, pcapFile(LINK.RAW, await story.packets(1)));
  const { findings, not } = await cluster.examine(file);
  rmSync(directory, { recursive: true });
  assert.equal(findings.filter(({ code }) => code === 'ND3011').length, 1);
  assert.equal(findings[0]!.code, 'ND3011');
  assert.ok(findings[0]!.seen.length >= 3, findings[0]!.seen.join('\n'));
  assert.ok(!not.some(({ code }) => code === 'ND3011'));
});
