import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ClusterPod, noCluster } from '../kit/cluster-pod.ts';
import { namespaceObject, podObject, serviceObject, sliceObject } from '../kit/cluster-objects.ts';
import { question } from '../kit/child.ts';
import { addresses } from '../kit/dig.ts';

const pods = ['172.17.0.4', '172.17.0.5', '172.17.0.6'];
const client = '172.17.0.7';

const objects = {
  namespaces: [namespaceObject('critical-app')],
  services: [serviceObject('critical-app', 'backend', '10.3.0.116', '80')],
  endpointslices: [sliceObject('critical-app', 'backend', pods, '80')],
  pods: [
    podObject('critical-app', 'client', client),
    ...pods.map((ip, i) => podObject('critical-app', `backend-1440326531-${i}`, ip)),
  ],
};

const name = 'backend.critical-app.svc.cluster.local';

// The incident is from 2016, and its Corefile is not known. Today, its cluster would have the default one.
for (const corefile of ['kubeadm.corefile', 'helm-chart.corefile']) {
  describe(
    `Understanding how Kubernetes DNS services work, served from ${corefile}`,
    { skip: noCluster() },
    () => {
      let cluster: ClusterPod;
      before(async () => {
        cluster = await ClusterPod.make({ objects, clients: [client] });
        await cluster.serve(`test/corefiles/${corefile}`);
      });
      after(() => cluster.end());

      test("the query of the client has the 56 bytes that the story shows, and its reply is the service's address", () => {
        assert.equal(question(name, 1).length, 56);
        const reply = cluster.askFrom(client, name);
        assert.equal(reply.status, 'NOERROR');
        assert.equal(reply.flags, 'qr aa rd');
        assert.equal(reply.counts, '1/0/0');
        assert.deepEqual(addresses(reply), ['10.3.0.116']);
      });

      test('there is no IPv6 address, but the name exists', () => {
        const reply = cluster.askFrom(client, name, 'AAAA');
        assert.equal(reply.status, 'NOERROR');
        assert.equal(reply.counts, '0/1/0');
      });

      test('over TCP it is the same reply', () => {
        const reply = cluster.askFrom(client, name, '+tcp');
        assert.equal(reply.counts, '1/0/0');
        assert.deepEqual(addresses(reply), ['10.3.0.116']);
      });

      test('the address leads back to the service, and the endpoints to their pods', () => {
        const reverse = (ip: string): string => cluster.ask('-x', ip).answer[0] ?? '';
        assert.match(
          reverse('10.3.0.116'),
          / IN PTR backend\.critical-app\.svc\.cluster\.local\.$/,
        );
        for (const ip of pods)
          assert.match(
            reverse(ip),
            new RegExp(` IN PTR ${ip.replaceAll('.', '-')}\\.${name.replaceAll('.', '\\.')}\\.$`),
          );
      });

      test("a pod's name made of its address is answered with it", () => {
        assert.deepEqual(addresses(cluster.ask('172-17-0-6.critical-app.pod.cluster.local')), [
          '172.17.0.6',
        ]);
      });

      test('the neighbour namespace has no backend', () => {
        assert.equal(cluster.ask('backend.default.svc.cluster.local').status, 'NXDOMAIN');
      });

      // The chart's `cache 30` caches replies for half a minute, while kubeadm's setting excludes cluster names.
      if (corefile !== 'kubeadm.corefile') return;
      test('when the deployment is scaled, a headless twin shows it at once', async () => {
        await cluster.api({
          put: 'services',
          object: serviceObject('critical-app', 'twin', 'None', '80'),
        });
        await cluster.api({
          put: 'endpointslices',
          object: sliceObject('critical-app', 'twin', pods, '80'),
        });
        const twin = 'twin.critical-app.svc.cluster.local';
        const three = await cluster.askUntil((reply) => reply.answer.length === 3, [twin]);
        assert.deepEqual(addresses(three), pods);
        await cluster.api({
          put: 'endpointslices',
          object: sliceObject('critical-app', 'twin', [...pods, '172.17.0.8'], '80'),
        });
        const four = await cluster.askUntil((reply) => reply.answer.length === 4, [twin]);
        assert.deepEqual(addresses(four), [...pods, '172.17.0.8']);
      });
    },
  );
}
