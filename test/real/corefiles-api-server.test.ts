import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { printed, type Child } from '../kit/child.ts';
import { ClusterPod, noCluster } from '../kit/cluster-pod.ts';
import { namespaceObject, serviceObject } from '../kit/cluster-objects.ts';
import { addresses, type Dug } from '../kit/dig.ts';

const kubeadm = 'test/corefiles/kubeadm.corefile';
const objects = {
  namespaces: [namespaceObject('shop')],
  services: [serviceObject('shop', 'web', '10.96.40.1', 'http:80')],
};

const web = 'web.shop.svc.cluster.local';
const at = (ip: string) => (reply: Dug) => addresses(reply)[0] === ip;

describe('an API server that disappears and returns', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  let server: Child;
  before(async () => {
    cluster = await ClusterPod.make({ objects });
    server = await cluster.serve(kubeadm);
  });
  after(() => cluster.end());

  const move = (ip: string): Promise<void> =>
    cluster.api({ put: 'services', object: serviceObject('shop', 'web', ip, 'http:80') });

  test('a change is answered at once', async () => {
    assert.deepEqual(addresses(cluster.ask(web)), ['10.96.40.1']);
    await move('10.96.40.2');
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.2'), [web])), ['10.96.40.2']);
  });

  test('while it is unavailable, every answer stays, readiness too, and one line reports the problem and the state served', async () => {
    const before = server.output().length;
    await cluster.api({ go: 'down' });
    await printed(
      server,
      /\[WARNING\] plugin\/kubernetes: .*(nothing listens at|dropped the connection).*10\.96\.0\.1/,
      15_000,
    );
    for (let i = 0; i < 10; i++) {
      const reply = cluster.ask(web);
      assert.deepEqual(addresses(reply), ['10.96.40.2'], reply.text);
      assert.equal(reply.flags, 'qr aa rd');
      assert.equal(cluster.ask('gone.shop.svc.cluster.local').status, 'NXDOMAIN');
    }
    assert.equal(cluster.page(':8181/ready').status, 200);
    const lines = server.output().slice(before);
    assert.match(lines, /still serving answers from/);
    assert.match(lines, /trying again in/);
    assert.ok(lines.split('\n').length < 15, lines);
  });

  test('changes made while it was away arrive once it is back, and that is reported', async () => {
    await move('10.96.40.3');
    await cluster.api({ delete: 'services', namespace: 'kube-system', name: 'kube-dns' });
    await cluster.api({ go: 'up' });
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.3'), [web], 40_000)), [
      '10.96.40.3',
    ]);
    const gone = await cluster.askUntil(
      (reply) => reply.status === 'NXDOMAIN',
      ['kube-dns.kube-system.svc.cluster.local'],
      10_000,
    );
    assert.equal(gone.status, 'NXDOMAIN');
    await printed(server, /works again after/, 10_000);
  });

  test('after it has dropped its history, everything is listed again without a false answer', async () => {
    await cluster.api({ go: 'relist' });
    for (let i = 0; i < 20; i++) assert.deepEqual(addresses(cluster.ask(web)), ['10.96.40.3']);
    await move('10.96.40.4');
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.4'), [web])), ['10.96.40.4']);
  });

  test('an expired token is reported, answers stay, and the next token is used without a restart', async () => {
    await cluster.api({ tokens: ['token-2'] });
    await printed(
      server,
      /answered 401 Unauthorized.*the token or client certificate is not accepted and may have expired/,
      15_000,
    );
    assert.deepEqual(addresses(cluster.ask(web)), ['10.96.40.4']);
    await move('10.96.40.5');
    cluster.rotateToken('token-2');
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.5'), [web], 40_000)), [
      '10.96.40.5',
    ]);
  });

  test('a token that is replaced before the old one expires has no effect', async () => {
    const before = server.output().length;
    await cluster.api({ tokens: ['token-2', 'token-3'] });
    cluster.rotateToken('token-3');
    await cluster.api({ tokens: ['token-3'] });
    await move('10.96.40.6');
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.6'), [web])), ['10.96.40.6']);
    assert.doesNotMatch(server.output().slice(before), /401/);
  });

  test('nothing panicked, and requests to the API server are counted', () => {
    const { body } = cluster.page(':9153/metrics');
    assert.match(body, /^coredns_panics_total 0$/m);
    assert.match(body, /^coredns_kubernetes_rest_client_requests_total\{code="200"/m);
    assert.match(body, /^coredns_kubernetes_rest_client_requests_total\{code="401"/m);
  });
});

describe('an API server that is unavailable at startup', { skip: noCluster() }, () => {
  test('the server serves at once: SERVFAIL for cluster names, external names as ever, and it is not ready', async (t) => {
    const cluster = await ClusterPod.make({
      objects,
      zone: ['www.example.test. 300 IN A 192.0.2.80'],
    });
    t.after(() => cluster.end());
    await cluster.api({ go: 'down' });
    const server = await cluster.serve(kubeadm);
    assert.match(
      server.output(),
      /\[WARNING\] plugin\/kubernetes: starting server with unsynced Kubernetes API/,
    );
    assert.equal(cluster.ask(web).status, 'SERVFAIL');
    assert.deepEqual(addresses(cluster.ask('www.example.test')), ['192.0.2.80']);
    const ready = cluster.page(':8181/ready');
    assert.deepEqual(ready, { status: 503, body: 'kubernetes' });
    await cluster.api({ go: 'up' });
    assert.deepEqual(addresses(await cluster.askUntil(at('10.96.40.1'), [web], 40_000)), [
      '10.96.40.1',
    ]);
    // The last list (slices or namespaces) may arrive shortly after the first answer.
    for (let tries = 0; tries < 50 && cluster.page(':8181/ready').status !== 200; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.equal(cluster.page(':8181/ready').status, 200);
  });
});
