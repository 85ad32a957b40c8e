import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

/** Rules about settings in the cluster's Corefile that are missing from node-cache. */

const nodeCache = (more = '', to = '/etc/resolv.conf'): string =>
  `cluster.local:53 {\n bind 169.254.20.10\n forward . 10.96.0.11\n}\n.:53 {\n bind 169.254.20.10\n${more} forward . ${to}\n}\n`;

async function told(hosts: string, cache = nodeCache()): Promise<readonly string[]> {
  const Corefile = `.:53 {\n ${hosts}\n kubernetes cluster.local\n forward . 10.0.0.2\n}\n`;
  const { findings } = await lintTexts({ files: { Corefile, 'node-cache.corefile': cache } });
  return findings
    .filter(({ code }) => code === 'CF23')
    .map(({ spot, text }) => `${spot.file}:${spot.line}: ${text}`);
}

const past = (what: string): string =>
  `node-cache sends ${what} to /etc/resolv.conf, bypassing this`;

test('node-cache that asks a resolver of its own does not find what the cluster’s server has', async () => {
  const hosts = 'hosts {\n  10.1.0.7 db.corp.example\n  fallthrough\n }';
  assert.deepEqual(await told(hosts, nodeCache('', '192.0.2.53')), [
    "Corefile:3: node-cache sends 'db.corp.example' to 192.0.2.53, bypassing this",
  ]);
  assert.deepEqual(await told(hosts, nodeCache('', '10.96.0.11')), []);
});

describe('node-cache that asks the resolvers of its node', () => {
  test('does not find names that hosts has in the root zone', async () => {
    assert.deepEqual(
      await told('hosts {\n  10.1.0.7 DB.corp.example other\n  ttl 60\n  fallthrough\n }'),
      [`Corefile:3: ${past("'db.corp.example'")}`],
    );
  });

  test('does not find those of a file either', async () => {
    assert.deepEqual(await told('hosts /etc/coredns/NodeHosts {\n  fallthrough\n }'), [
      `Corefile:2: ${past('the names of /etc/coredns/NodeHosts')}`,
    ]);
  });

  test('finds names below a zone that it has a block for, and what its own hosts has', async () => {
    const cluster = 'hosts {\n  10.1.0.7 db.shop.svc.cluster.local\n  fallthrough\n }';
    assert.deepEqual(await told(cluster), []);
    assert.deepEqual(await told('hosts x.hosts cluster.local {\n  fallthrough\n }'), []);
    const own = 'hosts {\n  10.1.0.7 db.corp.example\n  fallthrough\n }';
    assert.deepEqual(await told(own, nodeCache(` ${own}\n`)), []);
  });

  test('finds what is below a zone that it has a block for, as the block sends it to the cluster', async () => {
    const { findings } = await lintTexts({
      files: {
        Corefile: 'db.corp.example:53 {\n forward . 10.1.0.53\n}\n',
        'node-cache.corefile': nodeCache().replace('cluster.local:53', 'corp.example:53'),
      },
    });
    assert.deepEqual(
      findings.filter(({ code }) => code === 'CF23'),
      [],
    );
  });

  test('lacks nothing where hosts is that of the pod itself', async () => {
    assert.deepEqual(await told('hosts'), []);
    assert.deepEqual(await told('hosts /etc/hosts {\n  fallthrough\n }'), []);
  });
});

test('the release in the image of node-cache does not apply to the Corefile of the cluster’s server', async () => {
  const daemon = (image: string, kind = 'DaemonSet'): string =>
    `kind: ${kind}\nmetadata: { name: dns }\nspec: { template: { spec: { containers: [{ name: c, image: "${image}" }] } } }\n`;
  const cache = daemon('registry.k8s.io/dns/k8s-dns-node-cache:1.26.4');
  const files = {
    'a.yaml': cache,
    Corefile: '.:53 {\n kubernetes cluster.local\n forward . 10.0.0.2\n}\n',
  };
  const unknown = async (given: Readonly<Record<string, string>>) => {
    const { findings, target } = await lintTexts({ files: given });
    const found = findings.filter(({ code }) => code === 'CF01');
    return [target?.kind ?? null, ...found.map(({ text }) => text)];
  };
  assert.deepEqual(await unknown(files), [null]);
  assert.deepEqual(
    await unknown({ ...files, 'b.yaml': daemon('coredns/coredns:1.11.3', 'Deployment') }),
    ['coredns'],
  );
  const own = '.:53 {\n bind 169.254.20.10\n acl {\n  allow\n }\n forward . /etc/resolv.conf\n}\n';
  assert.deepEqual(await unknown({ 'a.yaml': cache, Corefile: own }), [
    'node-cache',
    "node-cache is built without the plugin 'acl'",
  ]);
});
