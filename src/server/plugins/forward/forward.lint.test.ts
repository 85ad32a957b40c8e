import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

/** Upstreams that lead back to the server. */

const corefile = (to: string): string => `.:53 {\n kubernetes cluster.local\n forward . ${to}\n}\n`;

const service =
  'kind: Service\nmetadata: { name: kube-dns, namespace: kube-system }\nspec: { clusterIP: 10.96.0.10 }\n';

const nodeCache = (root: string): string =>
  `cluster.local:53 {\n bind 169.254.20.10 10.96.0.10\n forward . 10.96.0.11\n}\n.:53 {\n bind 169.254.20.10 10.96.0.10\n forward . ${root}\n}\n`;

async function told(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files });
  return findings
    .filter(({ code }) => code === 'CF03')
    .map(({ spot, severity, text }) => `${spot.file}:${spot.line} ${severity}: ${text}`);
}

describe('a cluster server that forwards', () => {
  test("to node-cache's address receives node-cache's own queries for cluster names", async () => {
    const Corefile = corefile('169.254.20.10');
    const asked = '169.254.20.10 is node-cache, which queries this server';
    assert.deepEqual(await told({ Corefile }), [`Corefile:3 warning: ${asked}`]);
    assert.deepEqual(
      await told({ Corefile, 'node-cache.corefile': nodeCache('/etc/resolv.conf') }),
      [`Corefile:3 warning: ${asked}`],
    );
  });

  test('to a node-cache that sends everything to the cluster causes a loop', async () => {
    assert.deepEqual(
      await told({
        Corefile: corefile('169.254.20.10'),
        'node-cache.corefile': nodeCache('10.96.0.11'),
      }),
      ['Corefile:3 error: 169.254.20.10 is node-cache, which queries this server'],
    );
  });

  test('to a resolv.conf that lists its own service, or node-cache, causes a loop', async () => {
    const Corefile = corefile('/etc/resolv.conf');
    const conf = (address: string) => ({ Corefile, 'resolv.conf': `nameserver ${address}\n` });
    assert.deepEqual(await told({ ...conf('10.96.0.10'), 'service.yaml': service }), [
      'Corefile:3 error: resolv.conf lists 10.96.0.10, which is the Service in front of this server',
    ]);
    assert.deepEqual(await told(conf('169.254.20.10')), [
      'Corefile:3 warning: resolv.conf lists 169.254.20.10, which is node-cache, which queries this server',
    ]);
    assert.deepEqual(await told({ ...conf('10.0.0.2'), 'service.yaml': service }), []);
    // A file in another pod is not the one that the server reads.
    const ofPod = 'search shop.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.10\n';
    assert.deepEqual(await told({ Corefile, 'resolv.conf': ofPod, 'service.yaml': service }), []);
  });

  test("to a cloud's link-local address, or from elsewhere to node-cache, does not", async () => {
    assert.deepEqual(await told({ Corefile: corefile('169.254.169.253') }), []);
    assert.deepEqual(await told({ Corefile: '.:53 {\n forward . 169.254.20.10\n}\n' }), []);
  });
});

test('a mistyped address is rejected without looking for a file', async () => {
  for (const [to, shown = to] of [
    ['10.0.0.300'],
    ['10.0.0'],
    ['10.0.0.300:53', '10.0.0.300'],
    ['8.8.8.8:53:1'],
    ['10.0.0.1;10.0.0.2'],
    ['10.0.0.1,', '10.0.0.1,'],
    ['2001:db8::zz'],
    ['tls://10.0.0.300', '10.0.0.300'],
  ] as const) {
    const { findings } = await lintTexts({ files: { Corefile: corefile(to) } });
    assert.deepEqual(
      findings.filter(({ code }) => code === 'CF43').map(({ text }) => text),
      [`plugin/forward: not an IP address or file: ${JSON.stringify(shown)}`],
      to,
    );
  }
  for (const to of ['resolv.conf', 'dns', '/etc/53', 'dns.example']) {
    const { findings } = await lintTexts({ files: { Corefile: corefile(to) } });
    assert.deepEqual(
      findings.filter(({ code }) => code === 'CF43'),
      [],
      to,
    );
  }
});
