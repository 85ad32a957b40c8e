import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ClusterPod, corefileText, noCluster } from '../kit/cluster-pod.ts';
import { joinObjects, namespaceObject, podObject } from '../kit/cluster-objects.ts';
import type { Child } from '../kit/child.ts';
import { addresses, type Dug } from '../kit/dig.ts';

/* The incident at process level, for half a minute of real time. autopath.test.ts plays hours of it in virtual time. */

/** The pod in `default` whose address was previously used by two finished pods in `argo-events`. */
const testing7 = '100.104.247.253';
/** The pod in `sre` that has the search path of `default`. */
const sre = '100.104.247.254';

const objects = joinObjects({
  namespaces: ['default', 'sre', 'argo-events'].map(namespaceObject),
  pods: [
    podObject('argo-events', 'webhook-j78g2', testing7, 'Failed'),
    podObject('argo-events', 'webhook-mx991', testing7, 'Succeeded'),
    podObject('default', 'testing7', testing7),
    podObject('sre', 'testing', sre),
  ],
});

const edge = 'nlb-api-public-c3207ffe0810c880.elb.us-east-1.amazonaws.com.';
const twilio = ['18.208.54.140', '18.211.224.155', '18.212.47.248'];
const zone = [
  'api.twilio.com. 20 IN CNAME virginia.us1.api-lb.twilio.com.',
  `virginia.us1.api-lb.twilio.com. 20 IN CNAME ${edge}`,
  ...twilio.map((ip) => `${edge} 8 IN A ${ip}`),
  'single.test. 300 IN A 192.0.2.9',
];

const parts = {
  objects,
  zone,
  clients: [testing7, sre],
  resolvConf: 'search eu-west-1.compute.internal\nnameserver 10.0.2.3\n',
};

const first = 'api.twilio.com.default.svc.cluster.local';

/** NXDOMAIN for one family and an existing name for the other. */
function disagree(a: Dug, aaaa: Dug): boolean {
  return (a.status === 'NXDOMAIN') !== (aaaa.status === 'NXDOMAIN');
}

describe('DNS issues in Kubernetes, served from its Corefile', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  let server: Child;
  before(async () => {
    cluster = await ClusterPod.make(parts);
    server = await cluster.serve('test/corefiles/story-autopath.corefile');
  });
  after(() => cluster.end());

  test('the Corefile starts unchanged on port 53', () => {
    assert.match(server.output(), /^\.:53$/m);
    assert.doesNotMatch(server.output(), /ERROR|FATAL/);
  });

  test('api.twilio.com has three addresses after two aliases, and no IPv6 address after the same aliases', () => {
    const a = cluster.ask('api.twilio.com');
    assert.equal(a.counts, '5/0/0');
    assert.deepEqual(addresses(a), twilio);
    const aaaa = cluster.ask('api.twilio.com', 'AAAA');
    assert.equal(aaaa.status, 'NOERROR');
    assert.deepEqual(
      aaaa.answer.map((line) => line.split(' ')[3]),
      ['CNAME', 'CNAME'],
    );
  });

  test('a pod with the address of a finished pod is recognised: its first search name is completed', () => {
    const reply = cluster.askFrom(testing7, first);
    assert.match(
      reply.answer[0] ?? '',
      new RegExp(`^${first.replaceAll('.', '\\.')}\\. \\d+ IN CNAME api\\.twilio\\.com\\.$`),
      reply.text,
    );
    assert.deepEqual(addresses(reply), twilio);
  });

  test('the pod with another namespace in its search path is not completed, in neither family', () => {
    assert.equal(cluster.askFrom(sre, first).status, 'NXDOMAIN');
    assert.equal(cluster.askFrom(sre, first, 'AAAA').status, 'NXDOMAIN');
    assert.deepEqual(addresses(cluster.askFrom(sre, 'api.twilio.com')), twilio);
  });

  test('over three lives of the A record, with both clients asking, no client sees the families disagree', async () => {
    const end = performance.now() + 25_000;
    const wrong: string[] = [];
    let rounds = 0;
    // On a busy machine, a round takes seconds.
    while (performance.now() < end || rounds < 20) {
      // The client that is first to query an expired record alternates between rounds.
      const clients = rounds % 2 === 0 ? [testing7, sre] : [sre, testing7];
      for (const client of clients) {
        const types = rounds % 3 === 0 ? ['AAAA', 'A'] : ['A', 'AAAA'];
        const [one, two] = types.map((type) => cluster.askFrom(client, first, type)) as [Dug, Dug];
        if (disagree(one, two))
          wrong.push(`${client}: ${types[0]} ${one.status}, ${types[1]} ${two.status}`);
      }
      rounds++;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    assert.deepEqual(wrong, []);
  });

  test('when the address passes to a pod of another namespace, that pod is completed, and no longer the old namespace', async () => {
    await cluster.api({
      put: 'pods',
      object: podObject('default', 'testing7', testing7, 'Succeeded'),
    });
    await cluster.api({ put: 'pods', object: podObject('sre', 'newcomer', testing7) });
    const found = 'single.test.sre.svc.cluster.local';
    const end = performance.now() + 10_000;
    let reply = cluster.askFrom(testing7, found);
    while (reply.status !== 'NOERROR' && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      reply = cluster.askFrom(testing7, found);
    }
    assert.deepEqual(addresses(reply), ['192.0.2.9'], reply.text);
    assert.equal(
      cluster.askFrom(testing7, 'single.test.default.svc.cluster.local').status,
      'NXDOMAIN',
    );
  });

  test('the log has a line for each query, as CoreDNS writes it', () => {
    assert.match(
      server.output(),
      /\[INFO\] 100\.104\.247\.253:\d+ - \d+ "A IN api\.twilio\.com\.default\.svc\.cluster\.local\. udp 58 false 512" NOERROR qr,[a-z,]+ \d+ \d+\.\d+s/,
    );
  });
});

describe(
  'DNS issues in Kubernetes, with the search path taken from the name',
  { skip: noCluster() },
  () => {
    let cluster: ClusterPod;
    before(async () => {
      cluster = await ClusterPod.make(parts);
      const text = corefileText('story-autopath.corefile')
        .replace('autopath @kubernetes', 'autopath @name')
        .replace('pods verified', 'pods insecure');
      await cluster.serve(cluster.file('Corefile', text));
    });
    after(() => cluster.end());

    test('every client gets the same reply: the pod, the pod with a wrong search path, and a client that is not a pod', () => {
      for (const type of ['A', 'AAAA']) {
        const replies = [
          cluster.askFrom(testing7, first, type),
          cluster.askFrom(sre, first, type),
          cluster.ask(first, type),
        ];
        assert.deepEqual(
          replies.map(({ status }) => status),
          ['NOERROR', 'NOERROR', 'NOERROR'],
        );
        const data = replies.map((reply) =>
          reply.answer.map((line) => line.split(' ').slice(3).join(' ')).toSorted(),
        );
        assert.deepEqual(data[0], data[1]);
        assert.deepEqual(data[0], data[2]);
      }
    });

    test('a namespace that does not exist is not in any search path', () => {
      assert.equal(cluster.ask('api.twilio.com.nowhere.svc.cluster.local').status, 'NXDOMAIN');
    });
  },
);
