import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ClusterPod, noCluster, PLACE } from '../kit/cluster-pod.ts';
import {
  joinObjects,
  namespaceObject,
  serviceObject,
  sliceObject,
} from '../kit/cluster-objects.ts';
import type { Child } from '../kit/child.ts';
import { addresses } from '../kit/dig.ts';

const objects = joinObjects({
  namespaces: [namespaceObject('kube-health')],
  services: [serviceObject('kube-health', 'kuberhealthy', '10.103.20.7', 'http:80')],
  endpointslices: [sliceObject('kube-health', 'kuberhealthy', ['172.17.0.7'], 'http:8080')],
});

describe('A trip down the DNS rabbit hole, served from its Corefile', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  let server: Child;
  before(async () => {
    cluster = await ClusterPod.make({ objects, zone: ['github.test. 300 A 192.0.2.4'] });
    server = await cluster.serve('test/corefiles/story-box.corefile');
  });
  after(() => cluster.end());

  test('the Corefile of 2020 starts unchanged on port 53, and its old words are reported with their replacements', () => {
    assert.match(server.output(), /^\.:53$/m);
    assert.match(server.output(), /proxy.*forward/);
    assert.match(server.output(), /upstream/);
    assert.doesNotMatch(server.output(), /ERROR|FATAL/);
  });

  for (const name of [
    'kube-health.localhost.default.svc.cluster.local',
    'kube-health.localhost.svc.cluster.local',
    'kube-health.localhost.cluster.local',
  ]) {
    test(`${name} is an authoritative NXDOMAIN`, () => {
      for (const type of ['A', 'AAAA']) {
        const reply = cluster.ask(name, type);
        assert.equal(reply.status, 'NXDOMAIN', reply.text);
        assert.equal(reply.flags, 'qr aa rd');
        assert.equal(reply.counts, '0/1/0');
        assert.match(
          reply.authority[0]!,
          /^cluster\.local\. \d+ IN SOA ns\.dns\.cluster\.local\. /,
        );
      }
    });
  }

  test('kube-health.localhost itself goes to the name server of the node, which does not know it', () => {
    const reply = cluster.ask('kube-health.localhost');
    assert.equal(reply.status, 'NXDOMAIN');
    assert.equal(reply.counts, '0/1/0');
    assert.match(reply.authority[0]!, /^\. \d+ IN SOA a\.root\./);
  });

  test('the service that the check should have called has its address, and the address its name', () => {
    const reply = cluster.ask('kuberhealthy.kube-health.svc.cluster.local');
    assert.equal(reply.counts, '1/0/0');
    assert.deepEqual(addresses(reply), ['10.103.20.7']);
    const reverse = cluster.ask('-x', '10.103.20.7');
    assert.match(reverse.answer[0]!, /IN PTR kuberhealthy\.kube-health\.svc\.cluster\.local\.$/);
  });

  test('the node answers an external name, and an external reverse name falls through to it', () => {
    assert.deepEqual(addresses(cluster.ask('github.test')), ['192.0.2.4']);
    const reverse = cluster.ask('-x', '192.0.2.77');
    assert.equal(reverse.status, 'NXDOMAIN');
    assert.match(reverse.authority[0]!, /a\.root\./);
  });

  test('the reply comes from the queried address', () => {
    for (const address of [PLACE.dns, PLACE.pod]) {
      const text = cluster.node.exec(
        'dig',
        `@${address}`,
        'kubernetes.default.svc.cluster.local',
        '+time=2',
        '+tries=1',
      );
      assert.match(text, new RegExp(`SERVER: ${address}#53`));
    }
  });

  test('health and metrics answer at their ports', () => {
    assert.deepEqual(cluster.page(':8080/health'), { status: 200, body: 'OK' });
    const { body } = cluster.page(':9153/metrics');
    assert.match(body, /^coredns_dns_requests_total\{.*server="dns:\/\/:53".*zone="\."/m);
  });
});
