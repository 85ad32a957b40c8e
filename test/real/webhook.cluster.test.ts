/** `ndots webhook` with a real API server, including reviews, certificates and the policy. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { spawnSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import { Authority } from '../kit/authority.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { freePorts } from '../kit/free-ports.ts';
import { webhookConfiguration } from '../kit/webhook-configuration.ts';

const podOf = (
  name: string,
  namespace: string,
  said: Record<string, string> = {},
  spec: object = {},
): KubeJson =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, annotations: said },
    spec: { containers: [{ name: 'a', image: 'a' }], ...spec },
  }) as KubeJson;

const namespaceOf = (name: string, said: Record<string, string> = {}): KubeJson =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations: said } }) as KubeJson;

interface MadePod {
  readonly metadata: { readonly annotations?: Record<string, string> };
  readonly spec: { readonly dnsConfig?: { readonly options?: readonly object[] } };
}

describe('with a real API server', { skip: noApiServer() ?? false }, () => {
  let cluster: Cluster;
  const directory = mkdtempSync(join(tmpdir(), 'ndots-webhook-'));
  before(async () => {
    cluster = await Cluster.start();
    await cluster.put([namespaceOf('shop'), namespaceOf('team', { 'ndots.dev/dns-ndots': '3' })]);
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  const make = async (pod: KubeJson): Promise<MadePod> => {
    await cluster.kubectlWith(JSON.stringify(pod), 'create', '-f', '-');
    const { name, namespace = '' } = pod.metadata;
    return JSON.parse(
      await cluster.kubectl('get', 'pod', name, '-n', namespace, '-o', 'json'),
    ) as MadePod;
  };

  describe('the webhook', () => {
    let child: Child | null = null;
    let port = 0;
    before(async () => {
      [port] = await freePorts(1);
      const authority = Authority.make('test');
      const { cert, key } = authority.issue('127.0.0.1', ['127.0.0.1']);
      writeFileSync(join(directory, 'tls.crt'), cert);
      writeFileSync(join(directory, 'tls.key'), key);
      child = start('ndots', [
        ...[
          'bin/ndots',
          'webhook',
          'serve',
          '--mode',
          'enforce',
          '--host',
          '127.0.0.1',
          '--port',
          String(port),
        ],
        ...['--cert', join(directory, 'tls.crt'), '--key', join(directory, 'tls.key')],
        ...['--kubeconfig', cluster.kubeconfig('admin')],
      ]);
      await printed(child, /serving with the certificate/, 20_000);
      const clientConfig = {
        url: `https://127.0.0.1:${port}/mutate`,
        caBundle: Buffer.from(authority.cert).toString('base64'),
      };
      await cluster.put([webhookConfiguration('by-url', clientConfig)]);
      await pause(2000);
    });
    after(async () => {
      child?.signal('SIGKILL');
      await child?.exitCode;
      await cluster.kubectl('delete', 'mutatingwebhookconfiguration', 'by-url');
    });

    test('sets the requested options of pods and namespaces, and reports that', async () => {
      const asked = await make(
        podOf('asked', 'shop', { 'ndots.dev/dns-ndots': '2', 'ndots.dev/dns-options': 'use-vc' }),
      );
      assert.deepEqual(asked.spec.dnsConfig, {
        options: [{ name: 'use-vc' }, { name: 'ndots', value: '2' }],
      });
      const team = await make(podOf('asked', 'team'));
      assert.deepEqual(team.spec.dnsConfig, { options: [{ name: 'ndots', value: '3' }] });
      assert.equal(
        team.metadata.annotations?.['ndots.dev/dns-advice'],
        'set ndots:3 (namespace team)',
      );
      assert.equal((await make(podOf('plain', 'shop'))).spec.dnsConfig, undefined);
    });

    test('a mistake in an annotation is a warning that kubectl prints, and the pod is made', async () => {
      const made = await make(podOf('mistaken', 'shop', { 'ndots.dev/dns-ndots': 'two' }));
      assert.equal(made.spec.dnsConfig, undefined);
    });

    test('while it hangs, and when it is killed, pods are still created', async () => {
      child!.signal('SIGSTOP');
      const hung = await make(podOf('hung', 'shop', { 'ndots.dev/dns-ndots': '2' }));
      assert.equal(hung.spec.dnsConfig, undefined);
      child!.signal('SIGKILL');
      await child!.exitCode;
      const killed = await make(podOf('killed', 'shop', { 'ndots.dev/dns-ndots': '2' }));
      assert.equal(killed.spec.dnsConfig, undefined);
    });
  });

  test('it makes its certificate, stores it in the Secret and registers it with the API server, and another replica takes over', async () => {
    const service = { name: 'ndots-webhook', namespace: 'kube-system', path: '/mutate' };
    await cluster.put([webhookConfiguration('ndots-webhook', { service })]);
    const ports = await freePorts(2);
    const replicas = ports.map((port) =>
      start('ndots', [
        ...['bin/ndots', 'webhook', 'serve', '--host', '127.0.0.1', '--port', String(port)],
        ...['--namespace', 'kube-system', '--kubeconfig', cluster.kubeconfig('admin')],
      ]),
    );
    try {
      const shown = await Promise.all(ports.map((port) => certificateAt(port)));
      const jsonpath = (what: string): string[] => ['-o', `jsonpath=${what}`];
      const kept = await cluster.kubectl(
        'get',
        'secret',
        'ndots-webhook',
        '-n',
        'kube-system',
        ...jsonpath('{.data.tls\\.crt}'),
      );
      const certificate = new X509Certificate(Buffer.from(kept, 'base64'));
      for (const one of shown) assert.equal(one.fingerprint256, certificate.fingerprint256);
      assert.equal(
        certificate.checkHost('ndots-webhook.kube-system.svc'),
        'ndots-webhook.kube-system.svc',
      );
      const what = ['get', 'mutatingwebhookconfiguration', 'ndots-webhook'];
      let bundle = '';
      for (let tries = 0; bundle === '' && tries < 50; tries++) {
        bundle = await cluster.kubectl(
          ...what,
          ...jsonpath('{.webhooks[0].clientConfig.caBundle}'),
        );
        await pause(200);
      }
      assert.ok(certificate.verify(new X509Certificate(Buffer.from(bundle, 'base64')).publicKey));
    } finally {
      for (const replica of replicas) {
        replica.signal('SIGTERM');
        assert.equal(await replica.exitCode, 0, replica.output());
      }
    }
  });

  test('the policy does the same without a server', async () => {
    const { stdout } = spawnSync('bin/ndots', ['webhook', 'policy', '--ndots', '4'], {
      encoding: 'utf8',
    });
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as KubeJson);
    assert.deepEqual(await cluster.put(objects), []);
    const options = async (pod: KubeJson): Promise<unknown> => (await make(pod)).spec.dnsConfig;
    for (let tries = 0; ; tries++) {
      // Policies take effect after a moment.
      const found = await options(podOf(`default-${tries}`, 'shop'));
      if (found !== undefined) {
        assert.deepEqual(found, { options: [{ name: 'ndots', value: '4' }] });
        break;
      }
      assert.ok(tries < 100, 'the policy does nothing');
      await pause(200);
    }
    assert.deepEqual(await options(podOf('p-asked', 'shop', { 'ndots.dev/dns-ndots': '2' })), {
      options: [{ name: 'ndots', value: '2' }],
    });
    assert.deepEqual(await options(podOf('p-team', 'team')), {
      options: [{ name: 'ndots', value: '3' }],
    });
    const own = { dnsConfig: { options: [{ name: 'ndots', value: '9' }] } };
    assert.deepEqual(await options(podOf('p-own', 'shop', {}, own)), own.dnsConfig);
    const other = { dnsConfig: { options: [{ name: 'use-vc' }] } };
    assert.deepEqual(await options(podOf('p-other', 'shop', {}, other)), {
      options: [{ name: 'use-vc' }, { name: 'ndots', value: '4' }],
    });
    assert.equal(await options(podOf('p-off', 'shop', { 'ndots.dev/dns': 'off' })), undefined);
    assert.equal(
      await options(podOf('p-wrong', 'shop', { 'ndots.dev/dns-ndots': '99' })),
      undefined,
    );
    assert.equal(await options(podOf('p-system', 'kube-system')), undefined);
    assert.equal(
      await options(podOf('p-default', 'shop', {}, { dnsPolicy: 'Default' })),
      undefined,
    );
  });
});

/** A server's certificate, returned as soon as the server presents one. */
async function certificateAt(port: number): Promise<X509Certificate> {
  for (let tries = 0; tries < 150; tries++) {
    const found = await new Promise<X509Certificate | null>((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate() ?? null);
        socket.destroy();
      });
      socket.on('error', () => resolve(null));
    });
    if (found !== null) return found;
    await pause(200);
  }
  throw new Error(`no certificate on port ${port}`);
}
