import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ClusterPod, noCluster } from '../kit/cluster-pod.ts';
import {
  joinObjects,
  namespaceObject,
  podObject,
  serviceObject,
  sliceObject,
} from '../kit/cluster-objects.ts';
import type { Child } from '../kit/child.ts';
import { addresses } from '../kit/dig.ts';

const client = '10.140.216.13';

const objects = joinObjects({
  namespaces: ['metrics', 'logs', 'datadog'].map(namespaceObject),
  services: [
    serviceObject('metrics', 'points', '10.129.204.20', '80'),
    serviceObject('datadog', 'echo', '10.129.204.147', 'http:80'),
  ],
  endpointslices: [sliceObject('datadog', 'echo', ['10.140.216.20'], 'http:8080')],
  pods: [podObject('datadog', 'client', client)],
});

const zone = [
  ...[103, 104, 105, 106, 147, 99].map((last) => `www.google.com. 300 IN A 173.194.76.${last}`),
  ...['67', '68', '93'].map((last) => `www.google.com. 300 IN AAAA 2a00:1450:400c:c0b::${last}`),
  'google.com. 300 IN A 216.58.218.238',
  'google.com. 300 IN AAAA 2607:f8b0:4004:808::200e',
  'backend.datadog.service.consul. 30 IN A 10.143.10.1',
];

const parts = {
  objects,
  zone,
  clients: [client],
  resolvConf: 'search ec2.internal\nnameserver 10.0.2.3\n',
};

describe('Kubernetes DNS horror stories: the Corefile before', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  let server: Child;
  before(async () => {
    cluster = await ClusterPod.make(parts);
    server = await cluster.serve('test/corefiles/story-datadog-1.corefile');
  });
  after(() => cluster.end());

  const both = (name: string): [ReturnType<ClusterPod['ask']>, ReturnType<ClusterPod['ask']>] => [
    cluster.askFrom(client, name, 'A'),
    cluster.askFrom(client, name, 'AAAA'),
  ];

  test('both its blocks start unchanged on port 53', () => {
    assert.match(server.output(), /^\.:53$/m);
    assert.match(server.output(), /^cluster\.local\.:53$/m);
  });

  test('scenario 1: points, queried in its own namespace, is found at the first search domain', () => {
    const reply = cluster.ask('points.metrics.svc.cluster.local');
    assert.equal(reply.counts, '1/0/0');
    assert.deepEqual(addresses(reply), ['10.129.204.20']);
  });

  test('scenario 2: points.metrics, queried in another namespace, is found at the second', () => {
    const first = cluster.ask('points.metrics.logs.svc.cluster.local');
    assert.equal(first.status, 'NXDOMAIN');
    assert.equal(first.counts, '0/1/0');
    assert.deepEqual(addresses(cluster.ask('points.metrics.svc.cluster.local')), ['10.129.204.20']);
  });

  for (const search of ['datadog.svc.cluster.local', 'svc.cluster.local', 'cluster.local']) {
    test(`www.google.com.${search} is NXDomain*- 0/1/0, for A and for AAAA`, () => {
      for (const reply of both(`www.google.com.${search}`)) {
        assert.equal(reply.status, 'NXDOMAIN');
        assert.equal(reply.flags, 'qr aa rd', 'authoritative, and no recursion available');
        assert.equal(reply.counts, '0/1/0');
      }
    });
  }

  test('www.google.com.ec2.internal is NXDOMAIN from upstream', () => {
    for (const reply of both('www.google.com.ec2.internal')) assert.equal(reply.status, 'NXDOMAIN');
  });

  test('www.google.com is 6/0/0 for A and 3/0/0 for AAAA', () => {
    const [a, aaaa] = both('www.google.com');
    assert.equal(a.counts, '6/0/0');
    assert.equal(
      a.answer.every((line) => line.includes(' IN A 173.194.76.')),
      true,
    );
    assert.equal(aaaa.counts, '3/0/0');
    assert.ok(addresses(aaaa).includes('2a00:1450:400c:c0b::67'));
  });

  test('echo.datadog is 1/0/0 for A and 0/1/0 for the additional AAAA query of musl and Go', () => {
    const [a, aaaa] = both('echo.datadog.svc.cluster.local');
    assert.equal(a.counts, '1/0/0');
    assert.deepEqual(addresses(a), ['10.129.204.147']);
    assert.equal(aaaa.status, 'NOERROR');
    assert.equal(aaaa.counts, '0/1/0');
  });

  test('a client with random case gets its own spelling back, refused and answered, cached or not', () => {
    const names = [
      ['BaCKEnd.DAtAdOG.serViCe.CONsul.DATAdog.svC.clusTER.LOCaL', 'A', 'NXDOMAIN', '0/1/0'],
      ['baCKEND.dATaDOg.sERvICE.cONSuL.dataDog.svc.ClUsTER.loCaL', 'AAAA', 'NXDOMAIN', '0/1/0'],
      ['bACKEND.dataDog.SeRvICe.CONsUL', 'A', 'NOERROR', '1/0/0'],
      ['BaCkenD.DatADog.SerViCE.CONsUL', 'A', 'NOERROR', '1/0/0'],
      ['BaCkenD.DatADog.SerViCE.CONsUL', 'AAAA', 'NOERROR', '0/1/0'],
    ] as const;
    for (const [name, type, status, counts] of names) {
      const reply = cluster.askFrom(client, name, type);
      assert.equal(reply.status, status, name);
      assert.equal(reply.counts, counts, name);
      assert.equal(reply.question, `${name}.`);
      if (counts === '1/0/0')
        assert.equal(reply.answer[0]!.split(' ')[0], `${name}.`, 'the owner follows the question');
    }
  });

  test('the only socket of that client gets each reply under its id', () => {
    const names = ['A.metrics', 'points.METRICS', 'b.metrics', 'Points.metrics'].map(
      (name) => `${name}.svc.cluster.local`,
    );
    // Sends all questions on one connection before the first reply.
    const text = cluster.node.exec(
      'dig',
      '@10.96.0.10',
      '+noall',
      '+comments',
      '+question',
      '+tcp',
      '+keepopen',
      ...names,
    );
    const statuses = [...text.matchAll(/status: ([A-Z]+)/g)].map((match) => match[1]);
    assert.deepEqual(statuses, ['NXDOMAIN', 'NOERROR', 'NXDOMAIN', 'NOERROR']);
  });
});

describe('Kubernetes DNS horror stories: the Corefile with autopath', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  before(async () => {
    cluster = await ClusterPod.make(parts);
    await cluster.serve('test/corefiles/story-datadog-2.corefile');
  });
  after(() => cluster.end());

  test('google.com.datadog.svc.cluster.local is 2/0/0: a CNAME to google.com. and its address, in both families', () => {
    const name = 'google.com.datadog.svc.cluster.local';
    const a = cluster.askFrom(client, name, 'A');
    assert.equal(a.counts, '2/0/0', a.text);
    assert.match(
      a.answer[0]!,
      /^google\.com\.datadog\.svc\.cluster\.local\. \d+ IN CNAME google\.com\.$/,
    );
    assert.match(a.answer[1]!, /^google\.com\. \d+ IN A 216\.58\.218\.238$/);
    const aaaa = cluster.askFrom(client, name, 'AAAA');
    assert.equal(aaaa.counts, '2/0/0', aaaa.text);
    assert.match(aaaa.answer[1]!, /^google\.com\. \d+ IN AAAA 2607:f8b0:4004:808::200e$/);
  });

  test('a client that is not a pod is answered without autopath, and finds the name at the end of its own search', () => {
    assert.equal(cluster.ask('google.com.datadog.svc.cluster.local').status, 'NXDOMAIN');
    assert.equal(cluster.ask('google.com').counts, '1/0/0');
  });

  test('cluster names are unchanged', () => {
    assert.equal(cluster.askFrom(client, 'echo.datadog.svc.cluster.local').counts, '1/0/0');
    assert.equal(cluster.askFrom(client, 'echo.datadog.svc.cluster.local', 'AAAA').counts, '0/1/0');
  });
});

describe(
  'Kubernetes DNS horror stories: force_tcp in the wrong place',
  { skip: noCluster() },
  () => {
    test('the Corefile is refused as CoreDNS refuses it, and the place where force_tcp belongs is named', async (t) => {
      const cluster = await ClusterPod.make({ objects });
      t.after(() => cluster.end());
      const { code, text } = await cluster.refused('test/corefiles/story-datadog-3.corefile');
      assert.equal(code, 1);
      assert.match(
        text,
        /story-datadog-3\.corefile:8 - Error during parsing: Unknown directive 'force_tcp'/,
      );
      assert.match(text, /forward/);
    });
  },
);
