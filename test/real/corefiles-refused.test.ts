import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { printed } from '../kit/child.ts';
import { ClusterPod, noCluster, PLACE } from '../kit/cluster-pod.ts';
import { missing } from '../kit/dig.ts';

const kubeadm = 'test/corefiles/kubeadm.corefile';

/** Requires a single readable message, without a stack trace or a bare exception. */
function isForPeople(text: string): void {
  assert.doesNotMatch(text, /^\s+at .*\.[jt]s:\d+/m);
  assert.doesNotMatch(text, /Unhandled|uncaught/i);
}

describe('faults that prevent the server from starting in a pod', { skip: noCluster() }, () => {
  let cluster: ClusterPod;
  before(async () => {
    cluster = await ClusterPod.make({ inCluster: false });
  });
  after(() => cluster.end());

  test("no API server in the environment: CoreDNS's text, and the alternatives", async () => {
    const { code, text } = await cluster.refused(kubeadm);
    assert.equal(code, 1);
    assert.match(
      text,
      /plugin\/kubernetes: unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined/,
    );
    assert.match(text, /kubeadm\.corefile:7/);
    assert.match(text, /kubeconfig FILE/);
    isForPeople(text);
  });

  test('no service account in the pod: the file that is missing', async () => {
    const env = ['env', `KUBERNETES_SERVICE_HOST=${PLACE.api}`, 'KUBERNETES_SERVICE_PORT=443'];
    const { code, text } = await cluster.refused(kubeadm, ...env);
    assert.equal(code, 1);
    assert.match(text, /\/var\/run\/secrets\/kubernetes\.io\/serviceaccount\/token/);
    assert.match(text, /automountServiceAccountToken/);
    isForPeople(text);
  });

  test('a kubeconfig without a current context is reported, with the file and its contexts', async () => {
    const file = cluster.file(
      'kubeconfig',
      `apiVersion: v1
kind: Config
clusters: [{ name: prod, cluster: { server: "https://10.96.0.1" } }]
users: [{ name: admin, user: { token: abc } }]
contexts: [{ name: prod-admin, context: { cluster: prod, user: admin } }]
`,
    );
    const corefile = cluster.file(
      'Corefile',
      `.:53 {\n  kubernetes cluster.local {\n    kubeconfig ${file}\n  }\n}\n`,
    );
    const { code, text } = await cluster.refused(corefile);
    assert.equal(code, 1);
    assert.match(text, /context/);
    assert.match(text, /kubeconfig/);
    assert.match(text, /prod-admin/);
    isForPeople(text);
  });

  test('an unprivileged user without NET_BIND_SERVICE: the port, the capability, and how to give it', async (t) => {
    const gone = missing('setpriv', 'sysctl');
    if (gone !== null) return t.skip(gone);
    cluster.dnsPod.exec('sysctl', '-q', '-w', 'net.ipv4.ip_unprivileged_port_start=1024');
    const corefile = cluster.file('Corefile', '.:53 {\n  whoami\n}\n');
    cluster.dnsPod.exec('chmod', '-R', 'a+rX', corefile.replace(/\/[^/]*$/, ''));
    const user = [
      'setpriv',
      '--reuid',
      '65532',
      '--regid',
      '65532',
      '--clear-groups',
      '--bounding-set=-net_bind_service',
    ];
    const { code, text } = await cluster.refused(corefile, ...user);
    assert.equal(code, 1);
    assert.match(text, /listen (udp|tcp) \S*:53: permission denied/);
    assert.match(text, /NET_BIND_SERVICE/);
    assert.match(text, /capabilities/);
    isForPeople(text);
  });

  test('where unprivileged ports begin at 53, the same user may serve', async (t) => {
    const gone = missing('setpriv', 'sysctl');
    if (gone !== null) return t.skip(gone);
    cluster.dnsPod.exec('sysctl', '-q', '-w', 'net.ipv4.ip_unprivileged_port_start=53');
    const corefile = cluster.file('Corefile', '.:53 {\n  whoami\n}\n');
    cluster.dnsPod.exec('chmod', '-R', 'a+rX', corefile.replace(/\/[^/]*$/, ''));
    const child = cluster.dnsPod.start('ndots', [
      'setpriv',
      '--reuid',
      '65532',
      '--regid',
      '65532',
      '--clear-groups',
      `${process.cwd()}/bin/ndots`,
      'serve',
      '-conf',
      corefile,
    ]);
    await printed(child, /ndots-\d/, 15_000);
    assert.equal(cluster.ask('anything.test').status, 'NOERROR');
    await child.stop();
  });
});

describe('a forwarding loop', { skip: noCluster() }, () => {
  for (const [what, resolvConf] of [
    ['/etc/resolv.conf names loopback', 'nameserver 127.0.0.1\n'],
    ['/etc/resolv.conf names the DNS service itself', `nameserver ${PLACE.dns}\n`],
  ] as const) {
    test(`${what}: the server ends with code 1 and names the fix`, async (t) => {
      const cluster = await ClusterPod.make({ resolvConf });
      t.after(() => cluster.end());
      const { code, text } = await cluster.refused(kubeadm);
      assert.equal(code, 1);
      assert.match(
        text,
        /\[FATAL\] plugin\/loop: Loop \(\S+ -> \S+\) detected for zone "\.", see \S+\. Query: "HINFO \d+\.\d+\."/,
      );
      assert.match(text, /resolv\.conf/);
      assert.match(text, /kubelet/);
      isForPeople(text);
    });
  }
});

describe('a resolv.conf without a name server', { skip: noCluster() }, () => {
  test('forward without an upstream is refused, with the file that should name one', async (t) => {
    const cluster = await ClusterPod.make({ resolvConf: '# nothing here\nsearch example.test\n' });
    t.after(() => cluster.end());
    const { code, text } = await cluster.refused(kubeadm);
    assert.equal(code, 1);
    assert.match(text, /plugin\/forward: no valid upstream addresses found[^]*\/etc\/resolv\.conf/);
    isForPeople(text);
  });
});
