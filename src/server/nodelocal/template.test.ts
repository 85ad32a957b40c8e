import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { emptyConfig, readKubeDnsConfig, type KubeDnsConfig } from './kube-dns-config.ts';
import { renderTemplate, serviceVariable } from './template.ts';

const render = (template: string, config: KubeDnsConfig = emptyConfig): string =>
  renderTemplate(template, {
    localAddresses: ['169.254.20.10', '10.0.0.10'],
    port: 53,
    service: 'kube-dns',
    clusterDns: '9.10.11.12',
    config,
  });

describe('the template of a node cache', () => {
  test('variables are replaced by the local addresses, the cluster DNS and the upstreams', () => {
    assert.equal(
      render(
        'bind __PILLAR__LOCAL__DNS__ __PILLAR__DNS__SERVER__\nforward . __PILLAR__CLUSTER__DNS__\nforward . __PILLAR__UPSTREAM__SERVERS__ {\n force_tcp\n}\n',
      ),
      'bind 169.254.20.10 10.0.0.10 \nforward . 9.10.11.12\nforward . /etc/resolv.conf {\n force_tcp\n}\n',
    );
  });

  test('upstreams from a ConfigMap are queried over UDP', () => {
    const config = { ...emptyConfig, upstreamNameservers: ['2.2.2.2:10053', '3.3.3.3'] };
    assert.equal(
      render('    forward . __PILLAR__UPSTREAM__SERVERS__ {\n\t force_tcp\n    }\n', config),
      '    forward . 2.2.2.2:10053 3.3.3.3\n',
    );
  });

  test('each stub domain has its own block at the same addresses', () => {
    const stubDomains = new Map([['acme.local', ['1.1.1.1', '2.2.2.2:5300']]]);
    assert.equal(
      render('', { ...emptyConfig, stubDomains }),
      '\nacme.local:53 {\n    errors\n    cache 30\n    bind 169.254.20.10 10.0.0.10\n    forward . 1.1.1.1 2.2.2.2:5300 {\n        max_concurrent 16384\n    }\n}\n',
    );
  });

  test("a service's address is in the variable that every pod has", () => {
    assert.equal(serviceVariable('kube-dns-upstream'), 'KUBE_DNS_UPSTREAM_SERVICE_HOST');
  });
});

describe('the ConfigMap kube-dns', () => {
  const directory = (context: TestContext, files: Readonly<Record<string, string>>): string => {
    const path = mkdtempSync(join(tmpdir(), 'ndots-kube-dns-'));
    context.after(() => rmSync(path, { recursive: true }));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
    return path;
  };

  test('an absent directory, an empty one and other keys change nothing', (context) => {
    assert.deepEqual(readKubeDnsConfig('/nonexistent'), emptyConfig);
    assert.deepEqual(readKubeDnsConfig(directory(context, { federations: 'x' })), emptyConfig);
  });

  test('stub domains and upstream servers are JSON', (context) => {
    const path = directory(context, {
      stubDomains: '{"b.test":["1.1.1.1"],"a.test":["[2001:db8::1]:5300","tls://9.9.9.9"]}',
      upstreamNameservers: '["8.8.8.8","8.8.4.4:53"]',
    });
    const { stubDomains, upstreamNameservers } = readKubeDnsConfig(path);
    assert.deepEqual([...stubDomains.keys()], ['a.test', 'b.test']);
    assert.deepEqual(upstreamNameservers, ['8.8.8.8', '8.8.4.4:53']);
  });

  test('anything that would be another Corefile directive is rejected', (context) => {
    for (const [key, text] of [
      ['stubDomains', '{"a.test {\\n whoami\\n}":["1.1.1.1"]}'],
      ['stubDomains', '{"a.test":["1.1.1.1 {"]}'],
      ['stubDomains', '{"a.test":"1.1.1.1"}'],
      ['stubDomains', '[]'],
      ['stubDomains', '{'],
      ['upstreamNameservers', '["resolver.example"]'],
      ['upstreamNameservers', '["1.1.1.1:99999"]'],
      ['upstreamNameservers', '["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]'],
    ] as const)
      assert.throws(
        () => readKubeDnsConfig(directory(context, { [key]: text })),
        { code: 'kube-dns-config' },
        text,
      );
  });
});
