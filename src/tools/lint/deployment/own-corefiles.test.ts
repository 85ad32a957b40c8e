import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lintTexts } from '../../../../test/kit/lint-text.ts';

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: { name: dns, namespace: kube-system }
spec:
  template:
    spec:
      containers: [{ name: dns, image: "coredns/coredns:1.11.3" }]
`;
const forwards = '.:53 {\n errors\n forward . /etc/resolv.conf\n}\n';
const knows = '.:53 {\n errors\n forward . 192.0.2.53\n}\n';

/** True if dnsPolicy is reported as a loop, which requires a Corefile that forwards to resolv.conf. */
async function leadsBack(files: Readonly<Record<string, string>>): Promise<boolean> {
  const { findings } = await lintTexts({ files });
  return findings.some(({ code }) => code === 'CF52');
}

describe('of several Corefiles a deployment runs', () => {
  test('the one in its directory, and not one in another directory', async () => {
    const files = { 'one/dns.yaml': deployment, 'one/Corefile': knows, 'two/Corefile': forwards };
    assert.equal(await leadsBack(files), false);
    assert.equal(
      await leadsBack({ ...files, 'one/Corefile': forwards, 'two/Corefile': knows }),
      true,
    );
  });

  test('that of the ConfigMap that it mounts, whatever is in the same file', async () => {
    const map = (name: string, corefile: string): object => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kube-system' },
      data: { Corefile: corefile },
    });
    const mounting = (name: string): object => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'dns', namespace: 'kube-system' },
      spec: {
        template: {
          spec: {
            containers: [{ name: 'dns', image: 'coredns/coredns:1.11.3' }],
            volumes: [{ name: 'config', configMap: { name } }],
          },
        },
      },
    });
    const list = (name: string): Readonly<Record<string, string>> => ({
      'list.yaml': JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [map('one', knows), map('two', forwards), mounting(name)],
      }),
    });
    assert.equal(await leadsBack(list('one')), false);
    assert.equal(await leadsBack(list('two')), true);
    assert.equal(await leadsBack(list('another')), true);
  });

  test('the one above its directory rather than one next to it', async () => {
    const files = {
      'a/cluster/dns.yaml': deployment,
      'a/Corefile': knows,
      'a/b/Corefile': forwards,
    };
    assert.equal(await leadsBack(files), false);
  });

  test('the only one there is, wherever it lies', async () => {
    assert.equal(await leadsBack({ 'x/y/dns.yaml': deployment, 'z/Corefile': forwards }), true);
  });

  test('the one in its own file before others in its directory', async () => {
    const map = `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n${knows.replace(/^/gm, '    ').trimEnd()}\n`;
    assert.equal(await leadsBack({ 'one.yaml': deployment + map, Corefile: forwards }), false);
  });
});
