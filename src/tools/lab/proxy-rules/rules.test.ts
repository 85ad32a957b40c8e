import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import type { JsonObject } from '../../../server/base/json-object.ts';
import { clusterState, manifestObjects, withColons } from './cluster-state.ts';
import { iptablesJumps, iptablesRules } from './iptables.ts';
import { nftablesRules } from './nftables.ts';
import { defaultProxy, type ClusterState } from './traffic.ts';

function service(name: string, spec: JsonObject, more: JsonObject = {}): JsonObject {
  return {
    metadata: { namespace: 'critical-app', name },
    spec: { clusterIP: '10.3.0.116', ports: [{ port: 80 }], ...spec },
    ...more,
  };
}

function slice(name: string, endpoints: readonly JsonObject[]): JsonObject {
  return {
    metadata: {
      namespace: 'critical-app',
      name: `${name}-x`,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType: 'IPv4',
    ports: [{ port: 80 }],
    endpoints,
  };
}

const three = [4, 5, 6].map((last) => ({ addresses: [`172.17.0.${last}`] }));
const story = clusterState(
  { services: [service('backend', {})], slices: [slice('backend', three)] },
  'IPv4',
);
const rules = (state: ClusterState, options = {}): string[] =>
  iptablesRules(state, { ...defaultProxy, ...options }).split('\n');

describe('the rules of the published example', () => {
  test('its chains have the published names, which come from an older kube-proxy', () => {
    const text = rules(withColons(story)).join('\n');
    for (const name of [
      'SVC-QIAMZM7CZ7DGYY4U',
      'SEP-3EH5NW6TCZ37SLM7',
      'SEP-TM67DFGZSWKXXTT4',
      'SEP-4M5CAF23423KHRN7',
    ])
      assert.ok(text.includes(`:KUBE-${name} `), name);
    assert.match(text, /"critical-app\/backend: cluster IP"/);
  });

  test('a third, half of the rest, and the rest', () => {
    const chances = rules(story)
      .filter((line) => line.startsWith('-A KUBE-SVC-'))
      .map((line) => /--probability (\S+)/.exec(line)?.[1]);
    assert.deepEqual(chances, ['0.3333333333', '0.5000000000', undefined]);
  });
});

describe('without rules', () => {
  test('are headless and ExternalName services, and those of another proxy', () => {
    const services = [
      service('a', { clusterIP: 'None' }),
      service('b', { type: 'ExternalName', externalName: 'example.com' }),
      {
        ...service('c', {}),
        metadata: {
          namespace: 'x',
          name: 'c',
          labels: { 'service.kubernetes.io/service-proxy-name': 'mine' },
        },
      },
    ];
    assert.deepEqual(clusterState({ services, slices: [] }, 'IPv4').ports, []);
  });

  test('a service has rules in the families in which it has an address', () => {
    const dual = service('d', {
      clusterIP: 'fd00::9',
      clusterIPs: ['fd00::9', '10.0.0.9'],
      ipFamilies: ['IPv6', 'IPv4'],
    });
    const of = (family: 'IPv4' | 'IPv6') =>
      clusterState({ services: [dual], slices: [] }, family).ports.map(
        ({ clusterIP }) => clusterIP,
      );
    assert.deepEqual([of('IPv4'), of('IPv6')], [['10.0.0.9'], ['fd00::9']]);
  });
});

describe('services without endpoints', () => {
  test('are refused, and not dropped', () => {
    const lines = rules(clusterState({ services: [service('a', {})], slices: [] }, 'IPv4'));
    assert.ok(
      lines.some(
        (line) => line.includes('critical-app/a has no endpoints') && line.endsWith('-j REJECT'),
      ),
    );
  });

  test('with traffic policy Local and endpoints elsewhere are dropped', () => {
    const state = clusterState(
      {
        services: [service('a', { internalTrafficPolicy: 'Local' })],
        slices: [slice('a', [{ addresses: ['10.1.1.1'], nodeName: 'n2' }])],
      },
      'IPv4',
    );
    assert.ok(
      rules(state, { node: 'n1' }).some(
        (line) => line.includes('has no local endpoints') && line.endsWith('-j DROP'),
      ),
    );
    assert.ok(
      !rules(state, { node: 'n2' }).some(
        (line) => line.endsWith('-j DROP') && line.includes('critical-app'),
      ),
    );
  });

  test('terminating endpoints serve while there are no others', () => {
    const ending = {
      addresses: ['10.1.1.1'],
      conditions: { ready: false, serving: true, terminating: true },
    };
    const target = (endpoints: readonly JsonObject[]): string[] =>
      rules(
        clusterState({ services: [service('a', {})], slices: [slice('a', endpoints)] }, 'IPv4'),
      ).flatMap((line) => /--to-destination (\S+)/.exec(line)?.[1] ?? []);
    assert.deepEqual(target([ending]), ['10.1.1.1:80']);
    assert.deepEqual(target([ending, { addresses: ['10.1.1.2'] }]), ['10.1.1.2:80']);
  });
});

test('manifests: missing addresses and endpoints are derived', async () => {
  const objects = await manifestObjects('examples/cluster', (problem) =>
    assert.fail(problem.print()),
  );
  const text = rules(clusterState(objects, 'IPv4')).join('\n');
  assert.match(text, /critical-app\/backend/);
  assert.match(
    text,
    /kube-system\/kube-dns:dns cluster IP" -m udp -p udp -d 10\.3\.0\.10 --dport 53/,
  );
});

const cannot =
  spawnSync('unshare', ['-n', 'iptables', '-L', '-n']).status === 0
    ? false
    : 'needs root, iptables and network namespaces';

describe('a kernel accepts the rules', { skip: cannot }, () => {
  const state = clusterState(
    {
      services: [
        service(
          'a',
          {
            sessionAffinity: 'ClientIP',
            type: 'LoadBalancer',
            externalTrafficPolicy: 'Local',
            healthCheckNodePort: 31_000,
            loadBalancerSourceRanges: ['10.0.0.0/8'],
            ports: [{ port: 80, nodePort: 30_080 }],
          },
          { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } } },
        ),
        service('b', {
          clusterIP: '10.3.0.117',
          ports: [{ name: 'dns', protocol: 'UDP', port: 53 }],
        }),
      ],
      slices: [slice('a', three)],
    },
    'IPv4',
  );
  const load = (script: string, input: string): void => {
    const { status, stderr } = spawnSync('unshare', ['-n', 'sh', '-c', script], {
      input,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
  };

  test('of iptables', () => {
    load('iptables-restore --noflush', `${iptablesRules(state, defaultProxy)}${iptablesJumps()}`);
  });

  test('of nftables, also as a replacement', (t) => {
    if (spawnSync('nft', ['--version']).status !== 0) return t.skip('needs nft');
    const text = nftablesRules(state, defaultProxy);
    load('nft -f - && nft list ruleset > /dev/null', text + text);
  });
});

function large(count: number): ClusterState {
  const services: JsonObject[] = [];
  const slices: JsonObject[] = [];
  for (let index = 0; index < count; index++) {
    const name = `svc-${index}`;
    services.push(service(name, { clusterIP: `10.96.${index >> 8}.${index & 255}` }));
    slices.push(
      slice(
        name,
        Array.from({ length: 10 }, (_, at) => ({
          addresses: [`10.${index >> 8}.${index & 255}.${at}`],
        })),
      ),
    );
  }
  return clusterState({ services, slices }, 'IPv4');
}

test('eight times as many services and endpoints take eight times as long in either mode, not 64 times', async () => {
  const [many, few] = [large(8000), large(1000)];
  for (const make of [iptablesRules, nftablesRules])
    await costsAtMost(
      24,
      () => assert.ok(make(many, defaultProxy).length > 4_000_000),
      () => make(few, defaultProxy),
    );
  await costsAtMost(
    24,
    () => large(8000),
    () => large(1000),
  );
});
