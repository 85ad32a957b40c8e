import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { printed, type Child } from '../kit/child.ts';
import { ClusterPod, corefileText, noCluster, type ClusterParts } from '../kit/cluster-pod.ts';
import { namespaceObject, serviceObject, sliceObject } from '../kit/cluster-objects.ts';
import { addresses, dig } from '../kit/dig.ts';

const parts: ClusterParts = {
  objects: {
    namespaces: [namespaceObject('shop')],
    services: [serviceObject('shop', 'web', '10.96.40.1', 'http:80')],
    endpointslices: [sliceObject('shop', 'web', ['10.244.1.5', '10.244.1.6'], 'http:8080')],
  },
  zone: [
    'www.example.test. 300 IN A 192.0.2.80',
    '4.2.0.192.in-addr.arpa. 300 IN PTR www.example.test.',
  ],
};

async function clusterWith(
  t: TestContext,
  corefile: string,
  more: ClusterParts = {},
): Promise<{ cluster: ClusterPod; server: Child }> {
  const cluster = await ClusterPod.make({ ...parts, ...more });
  t.after(() => cluster.end());
  const path = corefile.includes('\n')
    ? cluster.file('Corefile', corefile)
    : `test/corefiles/${corefile}`;
  return { cluster, server: await cluster.serve(path) };
}

/** The purpose of every default Corefile: answers for a service, forward and reverse, and for external names. */
function answersEverything(cluster: ClusterPod, ...how: readonly string[]): void {
  const service = cluster.ask(...how, 'web.shop.svc.cluster.local');
  assert.equal(service.counts, '1/0/0', service.text);
  assert.deepEqual(addresses(service), ['10.96.40.1']);
  const back = cluster.ask(...how, '-x', '10.96.40.1');
  assert.match(back.answer[0] ?? '', / IN PTR web\.shop\.svc\.cluster\.local\.$/, back.text);
  const srv = cluster.ask(...how, '_http._tcp.web.shop.svc.cluster.local', 'SRV');
  assert.match(srv.answer[0] ?? '', / IN SRV 0 100 80 web\.shop\.svc\.cluster\.local\.$/, srv.text);
  assert.equal(cluster.ask(...how, 'gone.shop.svc.cluster.local').status, 'NXDOMAIN');
  const outside = cluster.ask(...how, 'www.example.test');
  assert.deepEqual(addresses(outside), ['192.0.2.80'], outside.text);
  const outsideBack = cluster.ask(...how, '-x', '192.0.2.4');
  assert.match(outsideBack.answer[0] ?? '', / IN PTR www\.example\.test\.$/, outsideBack.text);
  const tcp = cluster.ask(...how, 'web.shop.svc.cluster.local', '+tcp');
  assert.deepEqual(addresses(tcp), ['10.96.40.1']);
}

function startedWithoutComplaint(server: Child): void {
  assert.doesNotMatch(server.output(), /\[(WARNING|ERROR|FATAL)\]/);
}

describe('the default Corefiles of cluster distributions', { skip: noCluster() }, () => {
  for (const name of ['kubeadm', 'eks', 'helm-chart'] as const) {
    test(`${name}: starts unchanged, answers, is healthy, ready and measured`, async (t) => {
      const { cluster, server } = await clusterWith(t, `${name}.corefile`);
      answersEverything(cluster);
      assert.deepEqual(cluster.page(':8181/ready'), { status: 200, body: 'OK' });
      assert.deepEqual(cluster.page(':8080/health'), { status: 200, body: 'OK' });
      assert.match(cluster.page(':9153/metrics').body, /^coredns_dns_requests_total\{/m);
      assert.match(server.output(), /^\.:53$/m);
      startedWithoutComplaint(server);
    });
  }

  test('coredns/deployment: reverse zones by CIDR, IPv6 among them', async (t) => {
    const { cluster, server } = await clusterWith(t, 'deployment.corefile');
    answersEverything(cluster);
    assert.equal(cluster.page(':8181/ready').status, 200);
    // An unused address in the service range. The file lists CIDR zones, and these do not fall through.
    assert.equal(cluster.ask('-x', '10.96.99.99').status, 'NXDOMAIN');
    startedWithoutComplaint(server);
  });

  test('k3s: nodes from the NodeHosts file, custom files by glob', async (t) => {
    const files = { '/etc/coredns/NodeHosts': '192.168.5.15 node-a\n192.168.5.16 node-b\n' };
    const { cluster, server } = await clusterWith(t, 'k3s.corefile', { files });
    answersEverything(cluster);
    const node = cluster.ask('node-a');
    assert.deepEqual(addresses(node), ['192.168.5.15']);
    assert.equal(node.answer[0]!.split(' ')[1], '30', 'ttl 60, cut by cache 30');
    assert.match(cluster.ask('-x', '192.168.5.16').answer[0] ?? '', / IN PTR node-b\.$/);
    assert.match(server.output(), /^home\.example\.:53$/m, 'the server block of home.server');
    assert.match(
      server.output(),
      /k3s-custom\/\*\.override/,
      'a pattern that fits nothing is told',
    );
    assert.equal(cluster.page(':8181/ready').status, 200);
  });

  test('k3s without custom files and with an override', async (t) => {
    const files = { '/etc/coredns/NodeHosts': '192.168.5.15 node-a\n' };
    const cluster = await ClusterPod.make({ ...parts, files });
    t.after(() => cluster.end());
    const path = cluster.file('Corefile', corefileText('k3s.corefile'));
    cluster.file('k3s-custom/rewrite.override', 'rewrite name alias.test www.example.test\nlog\n');
    const server = await cluster.serve(path);
    answersEverything(cluster);
    assert.deepEqual(
      addresses(cluster.ask('alias.test')),
      ['192.0.2.80'],
      'the override is in force',
    );
    await printed(server, /"A IN alias\.test\. udp/, 5000);
  });

  test('AKS: overrides, a server block of its own, and templates', async (t) => {
    const { cluster, server } = await clusterWith(t, 'aks.corefile');
    answersEverything(cluster);
    assert.equal(cluster.ask('a.b.c.d.internal.cloudapp.net').status, 'NXDOMAIN');
    assert.equal(cluster.ask('x.reddog.microsoft.com').status, 'NXDOMAIN');
    assert.match(server.output(), /^puglife\.local\.:53$/m);
    // The query log shows that log.override is active.
    await printed(server, /"A IN web\.shop\.svc\.cluster\.local\. udp/, 5000);
    const rewritten = cluster.ask('kubernetes.puglife.local');
    assert.deepEqual(addresses(rewritten), ['10.96.0.1'], rewritten.text);
    assert.equal(rewritten.question, 'kubernetes.puglife.local.');
    assert.equal(cluster.page(':8181/ready').status, 200);
  });

  test('AKS without custom files', async (t) => {
    const { cluster } = await clusterWith(t, corefileText('aks.corefile'));
    answersEverything(cluster);
    assert.equal(cluster.page(':8181/ready').status, 200);
  });

  test('OpenShift: port 5353, metrics on loopback, a forward zone and chaos', async (t) => {
    const { cluster } = await clusterWith(t, 'openshift.corefile');
    answersEverything(cluster, '-p', '5353');
    assert.equal(cluster.page(':8181/ready').status, 200);
    assert.equal(
      cluster.page(':9153/metrics').status,
      0,
      'metrics are for the sidecar on loopback alone',
    );
    assert.match(cluster.pageInside(':9153/metrics').body, /^coredns_dns_requests_total\{/m);
    assert.equal(cluster.ask('-p', '5353', 'hostname.bind', 'TXT', 'CH').counts, '1/0/0');
  });

  test("node-local DNS: four blocks on the link-local address, the cluster's names over TCP", async (t) => {
    const cluster = await ClusterPod.make(parts);
    t.after(() => cluster.end());
    cluster.dnsPod.exec('ip', 'addr', 'add', '169.254.20.10/32', 'dev', 'lo');
    const server = await cluster.serve('test/corefiles/node-local-dns.corefile');
    const outside = dig(cluster.dnsPod, '@169.254.20.10', 'www.example.test');
    assert.deepEqual(addresses(outside), ['192.0.2.80'], outside.text);
    assert.match(server.output(), /^cluster\.local\.:53 on 169\.254\.20\.10$/m);
    assert.match(server.output(), /^\.:53 on 10\.96\.0\.10$/m);
    const health = cluster.dnsPod.exec('curl', '-s', 'http://169.254.20.10:8080/health');
    assert.equal(health, 'OK');
    // Although its forward address is dead, there is an answer, and it arrives in time.
    assert.equal(
      dig(cluster.dnsPod, '@169.254.20.10', 'web.shop.svc.cluster.local', '+time=8').status,
      'SERVFAIL',
    );
  });

  test('IPv6 is served on the same port', async (t) => {
    const { cluster } = await clusterWith(t, 'kubeadm.corefile');
    const reply = dig(cluster.dnsPod, '@::1', 'web.shop.svc.cluster.local');
    assert.deepEqual(addresses(reply), ['10.96.40.1'], reply.text);
  });
});
