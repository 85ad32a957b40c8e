import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseCorefileText } from '../parse-corefile.ts';
import { deriveTemplate } from '../../../server/nodelocal/cluster-corefile.ts';

const derive = (text: string): string => {
  const parsed = parseCorefileText({ file: 'Corefile', text, dnsPort: 53, env: {} });
  assert.deepEqual(parsed.problems, []);
  const parts = { health: '169.254.20.10:8080', metrics: ':9253', port: 53 };
  return deriveTemplate(parsed.corefile, parts);
};

/** Maps zones to a summary of their block. */
const blocks = (text: string): Record<string, string> => {
  const { corefile, problems } = parseCorefileText({ file: 'x', text, dnsPort: 53, env: {} });
  assert.deepEqual(problems, []);
  return Object.fromEntries(
    corefile.blocks.map(({ keys, directives }) => [
      keys.map(({ zone }) => zone).join(' '),
      directives
        .filter(({ name }) => name === 'forward')
        .map(({ args, block }) =>
          [...args, ...(block ?? []).map((line) => line.name)].map((word) => word.text).join(' '),
        )
        .join('; '),
    ]),
  );
};

const CLUSTER = '. __PILLAR__CLUSTER__DNS__ force_tcp max_concurrent';

describe('the node’s Corefile derived from the cluster’s', () => {
  test('kubernetes zones are queried at the cluster, and others directly at their upstreams', () => {
    assert.deepEqual(
      blocks(
        derive(`.:53 {
          errors
          health {
            lameduck 5s
          }
          ready
          kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            fallthrough in-addr.arpa ip6.arpa
          }
          prometheus :9153
          forward . /etc/resolv.conf {
            max_concurrent 1000
          }
          cache 30
          loop
          reload
          loadbalance
        }
        corp.example:53 {
          errors
          cache 30
          forward . 10.1.1.1 10.1.1.2
        }`),
      ),
      {
        'cluster.local. in-addr.arpa. ip6.arpa.': CLUSTER,
        '.': '. /etc/resolv.conf max_concurrent',
        'corp.example.': '. 10.1.1.1 10.1.1.2',
      },
    );
  });

  test('names that the cluster answers without forwarding are queried there', () => {
    for (const directive of [
      'hosts {\n 10.0.0.1 a.corp.example\n fallthrough\n}\nforward . 10.1.1.1',
      'rewrite name a.corp.example b.corp.example\nforward . 10.1.1.1',
      'template IN A {\n answer "{{ .Name }} 5 IN A 10.0.0.1"\n}',
      'file /etc/coredns/db',
      'acl {\n block\n}\nforward . 10.1.1.1',
      'forward . 127.0.0.1:5353',
      'forward . /etc/coredns/resolv.conf',
      'forward . tls://9.9.9.9 {\n tls /etc/cert /etc/key\n}',
      'forward . dns.corp.example',
    ])
      assert.deepEqual(
        blocks(derive(`corp.example:53 {\n${directive}\n}`)),
        { 'corp.example.': CLUSTER },
        directive,
      );
  });

  test('the port of the cluster’s DNS pods is of no account: their service maps 53 to it', () => {
    for (const port of [5353, 1153]) {
      const text = derive(`corp.example:${port} {
        forward . 10.1.1.1
      }
      .:${port} {
        bufsize 1232
        kubernetes cluster.local in-addr.arpa
        forward . /etc/resolv.conf
      }
      hostname.bind:${port} {
        chaos
      }`);
      assert.deepEqual(blocks(text), {
        'corp.example.': '. 10.1.1.1',
        'cluster.local. in-addr.arpa.': CLUSTER,
        '.': '. /etc/resolv.conf',
        'hostname.bind.': CLUSTER,
      });
      assert.deepEqual(text.match(/:\d+(?= )/g), [':53', ':53', ':53', ':53', ':53']);
    }
  });

  test('among several ports, the one that serves the cluster zones is used, then 53, then the only one', () => {
    const of = (...keys: readonly string[]): readonly string[] =>
      Object.keys(blocks(derive(keys.map((key) => `${key}\n}`).join('\n'))));
    const kubernetes = 'kubernetes cluster.local';
    assert.deepEqual(of('a.test:53 {\nany', `cluster.local:5353 {\n${kubernetes}`), [
      'cluster.local.',
    ]);
    assert.deepEqual(of(`a.test:5353 {\n${kubernetes}`, `b.test:53 {\n${kubernetes}`), [
      'cluster.local.',
      'b.test.',
    ]);
    assert.deepEqual(of('a.test:54 {\nany', 'b.test:53 {\nany'), ['b.test.']);
    assert.deepEqual(of('a.test:54 {\nany', 'b.test:54 {\nany'), ['a.test.', 'b.test.']);
  });

  test('encrypted transports are the cluster’s own', () => {
    assert.deepEqual(
      blocks(derive('tls://.:853 {\n forward . 1.1.1.1\n}\n.:5353 {\n forward . 1.1.1.2\n}')),
      { '.': '. 1.1.1.2' },
    );
  });

  test('a Corefile without a block for the cluster DNS is rejected', () => {
    for (const text of [
      '',
      '# nothing yet\n',
      'tls://.:853 {\n forward . 1.1.1.1\n}',
      'a.test:54 {\n any\n}\nb.test:55 {\n any\n}',
    ])
      assert.throws(() => derive(text), { code: 'no-cluster-block' }, text);
  });

  test('warns about health once', () => {
    const text = derive('a.test:53 {\n forward . 1.1.1.1\n}\nb.test:53 {\n forward . 1.1.1.1\n}');
    assert.equal(text.split('health 169.254.20.10:8080').length, 2);
  });
});
