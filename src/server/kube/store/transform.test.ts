import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  transformEndpoints,
  transformNamespace,
  transformPod,
  transformService,
  transformServiceImport,
  transformSlice,
} from './transform.ts';

const options = { zones: true, podLabels: false };
const metadata = { namespace: 'default', name: 'web', managedFields: [{ manager: 'x' }] };

describe('a service', () => {
  test('keeps its addresses, ports and external addresses', () => {
    assert.deepEqual(
      transformService({
        metadata,
        spec: {
          type: 'LoadBalancer',
          clusterIP: '10.0.0.1',
          clusterIPs: ['10.0.0.1', 'fd00::1'],
          externalIPs: ['192.0.2.1'],
          ports: [
            { name: 'http', port: 80, targetPort: 8080 },
            { port: 53, protocol: 'UDP' },
          ],
        },
        status: {
          loadBalancer: { ingress: [{ ip: '192.0.2.2' }, { hostname: 'lb.example' }, {}] },
        },
      }),
      [
        {
          kind: 'Service',
          namespace: 'default',
          name: 'web',
          type: 'LoadBalancer',
          clusterIPs: ['10.0.0.1', 'fd00::1'],
          externalName: '',
          externalIPs: ['192.0.2.1'],
          loadBalancer: ['192.0.2.2', 'lb.example'],
          ports: [
            { name: 'http', protocol: 'TCP', port: 80 },
            { name: '', protocol: 'UDP', port: 53 },
          ],
        },
      ],
    );
  });

  test('from an old server has its single address', () => {
    assert.deepEqual(
      transformService({ metadata, spec: { clusterIP: '10.0.0.1' } })[0].clusterIPs,
      ['10.0.0.1'],
    );
    assert.deepEqual(transformService({ metadata, spec: { clusterIP: 'None' } })[0].clusterIPs, [
      'None',
    ]);
    assert.deepEqual(transformService({ metadata, spec: {} })[0].clusterIPs, []);
  });

  test('of type ExternalName has a target and no address', () => {
    const [found] = transformService({
      metadata,
      spec: { type: 'ExternalName', externalName: 'example.com.', clusterIP: '10.0.0.1' },
    });
    assert.equal(found.externalName, 'example.com');
    assert.deepEqual(found.clusterIPs, []);
  });

  test('that used to be ExternalName keeps no target', () => {
    const [found] = transformService({
      metadata,
      spec: { type: 'ClusterIP', externalName: 'old.example' },
    });
    assert.equal(found.externalName, '');
  });
});

describe('an endpoint slice', () => {
  test('is ready unless it says otherwise, regardless of serving and terminating', () => {
    const [found] = transformSlice(
      {
        metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
        endpoints: [
          { addresses: ['10.0.0.1'] },
          { addresses: ['10.0.0.2'], conditions: { ready: null } },
          { addresses: ['10.0.0.3'], conditions: { ready: false, serving: true } },
          { addresses: ['10.0.0.4'], conditions: { ready: true, terminating: true } },
        ],
      },
      options,
    );
    assert.deepEqual(
      found!.endpoints.map((endpoint) => endpoint.ready),
      [true, true, false, true],
    );
  });

  test('from v1beta1 gets node and zone from its topology', () => {
    const [found] = transformSlice(
      {
        metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            topology: { 'kubernetes.io/hostname': 'n1', 'topology.kubernetes.io/zone': 'a' },
            targetRef: { kind: 'Pod', name: 'web-1' },
          },
          { addresses: ['10.0.0.2'], targetRef: { kind: 'Node', name: 'n2' }, zone: 'b' },
        ],
      },
      options,
    );
    assert.deepEqual(
      found!.endpoints.map(({ nodeName, zone, pod }) => [nodeName, zone, pod]),
      [
        ['n1', 'a', 'web-1'],
        ['', 'b', 'n2'],
      ],
    );
  });

  test('keeps no zones unless they are wanted', () => {
    const raw = {
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
      endpoints: [{ addresses: ['10.0.0.1'], zone: 'a' }],
    };
    const [found] = transformSlice(raw, { zones: false, podLabels: false });
    assert.equal(found!.endpoints[0]!.zone, '');
  });

  test('keeps hints only if they are wanted', () => {
    const raw = {
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
      endpoints: [
        {
          addresses: ['10.0.0.1'],
          hints: { forZones: [{ name: 'a' }, {}], forNodes: [{ name: 'n1' }] },
        },
        { addresses: ['10.0.0.2'], hints: { forZones: 'b' } },
      ],
    };
    const hintsOf = (topology?: 'prefixes'): unknown[] =>
      transformSlice(raw, { ...options, topology })[0]!.endpoints.map(({ forZones, forNodes }) => [
        forZones,
        forNodes,
      ]);
    assert.deepEqual(hintsOf(), Array(2).fill([undefined, undefined]));
    assert.deepEqual(hintsOf('prefixes'), [
      [['a'], ['n1']],
      [undefined, undefined],
    ]);
  });

  test('names the target of an endpoint whatever its kind', () => {
    const [found] = transformSlice(
      {
        metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
        endpoints: [
          {
            addresses: ['10.0.0.1'],
            targetRef: { kind: 'VirtualMachineInstance', name: 'vm-1' },
          },
        ],
      },
      options,
    );
    assert.equal(found!.endpoints[0]!.pod, 'vm-1');
  });

  test('has domain names only for that address type', () => {
    const addresses = (addressType: string | undefined): readonly string[] =>
      transformSlice(
        {
          metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
          ...(addressType === undefined ? {} : { addressType }),
          endpoints: [{ addresses: ['db.example.org', '010.009.000.006', '::ffff:10.0.0.1'] }],
        },
        options,
      )[0]!.endpoints[0]!.addresses;
    assert.deepEqual(addresses('FQDN'), ['db.example.org', '010.009.000.006', '::ffff:10.0.0.1']);
    assert.deepEqual(addresses('IPv4'), ['10.9.0.6', '10.0.0.1']);
    assert.deepEqual(addresses(undefined), ['10.9.0.6', '10.0.0.1']);
  });

  test('without a service is ignored', () => {
    assert.deepEqual(transformSlice({ metadata, endpoints: [] }, options), []);
  });

  test('leaves a port open if it has no number', () => {
    const [found] = transformSlice(
      {
        metadata: { ...metadata, labels: { 'kubernetes.io/service-name': 'web' } },
        ports: [{ name: 'any', port: null }],
      },
      options,
    );
    assert.deepEqual(found!.ports, [{ name: 'any', protocol: 'TCP', port: -1 }]);
  });

  test('reports the time of its change to the millisecond, or 0 if it is malformed', () => {
    const stamp = (text: string): number =>
      transformSlice(
        {
          metadata: {
            ...metadata,
            labels: { 'kubernetes.io/service-name': 'web' },
            annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': text },
          },
        },
        options,
      )[0]!.triggeredAt;
    assert.equal(stamp('2026-01-01T00:00:01.234567891Z'), Date.UTC(2026, 0, 1) + 1234);
    assert.equal(stamp('yesterday'), 0);
  });
});

test('core Endpoints become one slice per subset, including unready addresses', () => {
  const found = transformEndpoints({
    metadata,
    subsets: [
      {
        addresses: [{ ip: '10.0.0.1', hostname: 'a', targetRef: { kind: 'Pod', name: 'web-1' } }],
        notReadyAddresses: [{ ip: '10.0.0.2' }],
        ports: [{ port: 80 }],
      },
      { addresses: [{ ip: '10.0.0.3' }] },
    ],
  });
  assert.deepEqual(
    found.map((slice) => [
      slice.name,
      slice.service,
      slice.endpoints.map((endpoint) => [endpoint.addresses[0], endpoint.ready, endpoint.pod]),
    ]),
    [
      [
        'web',
        'web',
        [
          ['10.0.0.1', true, 'web-1'],
          ['10.0.0.2', false, ''],
        ],
      ],
      ['web#1', 'web', [['10.0.0.3', true, '']]],
    ],
  );
  assert.deepEqual(transformEndpoints({ metadata, subsets: null }), []);
});

test('a pod keeps its addresses and the fields that show whether they are still its own', () => {
  const raw = {
    metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z', labels: { app: 'web' } },
    spec: { hostNetwork: true },
    status: {
      phase: 'Running',
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }],
    },
  };
  const [found] = transformPod(raw, options);
  assert.deepEqual(found, {
    kind: 'Pod',
    namespace: 'default',
    name: 'web',
    ips: ['10.0.0.1', 'fd00::1'],
    phase: 'Running',
    hostNetwork: true,
    terminating: true,
  });
  assert.deepEqual(transformPod(raw, { zones: false, podLabels: true })[0].labels, { app: 'web' });
  assert.deepEqual(transformPod({ metadata, status: { podIP: '10.0.0.9' } }, options)[0].ips, [
    '10.0.0.9',
  ]);
});

test('a namespace is its name, a service import its addresses', () => {
  assert.deepEqual(transformNamespace({ metadata: { name: 'default' } }), [
    { kind: 'Namespace', name: 'default' },
  ]);
  const [found] = transformServiceImport({
    metadata,
    spec: { type: 'Headless', ips: null, ports: [{ name: 'sql', port: 5432 }] },
  });
  assert.equal(found.type, 'Headless');
  assert.deepEqual(found.ips, []);
});

test('malformed fields are treated as missing and never throw', () => {
  for (const odd of [
    {},
    { metadata: 7, spec: [], status: 'x', endpoints: {}, subsets: [1, null] },
  ]) {
    transformService(odd);
    transformPod(odd, options);
    transformSlice(odd, options);
    transformEndpoints(odd);
    transformServiceImport(odd);
    assert.equal(transformNamespace(odd)[0].name, '');
  }
});
