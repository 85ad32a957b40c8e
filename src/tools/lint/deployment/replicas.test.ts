import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

/** Rules for DNS servers apply only to DNS servers, and rules for a chart apply only to that chart. */

async function codesOf(text: string, target?: string): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files: { 'a.yaml': text }, ...(target && { target }) });
  return findings.map(({ code }) => code).toSorted();
}

function deployment(container: string): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata: { name: dns, namespace: kube-system }
spec:
  replicas: 1
  template:
    spec:
      containers:
        - { name: one, ${container} }
`;
}

const values = `replicaCount: 2
networkPolicy: { enabled: true }
webhook: { enabled: true }
servers:
  - zones: [{ zone: . }]
    port: 53
    plugins: [{ name: errors }, { name: ready }, { name: health, configBlock: lameduck 5s }, { name: whoami }]
`;

describe('a Deployment with the image of ndots', () => {
  for (const args of ['[size, --follow]', '[webhook, serve]', '[check, serve, -f, /c.yaml]'])
    test(`that runs ${args} is not a DNS server`, async () => {
      assert.deepEqual(await codesOf(deployment(`image: "ndots:0.1.0", args: ${args}`)), []);
      const command = `[/usr/local/bin/ndots, ${args.slice(1)}`;
      assert.deepEqual(await codesOf(deployment(`image: "ndots:0.1.0", command: ${command}`)), []);
    });

  for (const how of [
    'args: [-conf, /etc/coredns/Corefile]',
    'args: [serve, -conf, /C]',
    'tty: false',
  ])
    test(`and ${how} is one`, async () => {
      const codes = await codesOf(deployment(`image: "ndots:0.1.0", ${how}`));
      assert.ok(codes.includes('CF39') && codes.includes('CF40'), codes.join());
    });
});

describe('values of a chart', () => {
  test('under keys that only the chart of ndots reads are for ndots', async () => {
    assert.deepEqual(await codesOf(values), []);
  });

  test('without them are for the CoreDNS chart, unless ndots is the target', async () => {
    const others = values.replace(/^(networkPolicy|webhook):.*\n/gm, '').replace(/^/, 'pdb: {}\n');
    assert.deepEqual(await codesOf(others), ['CF39']);
    assert.deepEqual(await codesOf(others, 'ndots'), []);
  });
});
