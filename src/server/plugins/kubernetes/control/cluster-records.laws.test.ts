import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { StringTable } from '../../../kube/store/object-record.ts';
import { ObjectStore } from '../../../kube/store/object-store.ts';
import type {
  EndpointSlice,
  KubeObject,
  ObjectKind,
  Pod,
  Service,
} from '../../../kube/store/objects.ts';
import { clusterRecords, type ClusterRecord } from './cluster-records.ts';

const word = fc.oneof(
  fc.constantFrom('', 'a', 'web', 'web-1', 'default', 'ndots'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom('None', '::1', '2001:DB8::1', '10.0.0.01', 'fd00::1%eth0'),
);
const port = fc.record({
  name: word,
  protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
  port: fc.integer({ min: -1, max: 65_535 }),
});
const service: fc.Arbitrary<Service> = fc.record({
  kind: fc.constant('Service' as const),
  namespace: word,
  name: word,
  type: fc.constantFrom('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  clusterIPs: fc.array(address, { maxLength: 2 }),
  externalName: word,
  externalIPs: fc.array(address, { maxLength: 2 }),
  loadBalancer: fc.array(fc.oneof(address, word), { maxLength: 2 }),
  ports: fc.array(port, { maxLength: 3 }),
});
const slice: fc.Arbitrary<EndpointSlice> = fc.record(
  {
    kind: fc.constant('EndpointSlice' as const),
    namespace: word,
    name: word,
    service: word,
    ports: fc.array(port, { maxLength: 2 }),
    endpoints: fc.array(
      fc.record(
        {
          addresses: fc.array(address, { maxLength: 2 }),
          ready: fc.boolean(),
          hostname: word,
          nodeName: word,
          pod: word,
          zone: word,
          forZones: fc.array(word, { minLength: 1, maxLength: 8 }),
          forNodes: fc.array(word, { minLength: 1, maxLength: 8 }),
        },
        { requiredKeys: ['addresses', 'ready', 'hostname', 'nodeName', 'pod', 'zone'] },
      ),
      { maxLength: 5 },
    ),
    triggeredAt: fc.constant(0),
    importedService: word.filter((text) => text !== ''),
    cluster: word.filter((text) => text !== ''),
  },
  {
    requiredKeys: ['kind', 'namespace', 'name', 'service', 'ports', 'endpoints', 'triggeredAt'],
  },
);
const pod: fc.Arbitrary<Pod> = fc.record(
  {
    kind: fc.constant('Pod' as const),
    namespace: word,
    name: word,
    ips: fc.array(address, { maxLength: 2 }),
    phase: fc.constantFrom('', 'Pending', 'Running'),
    hostNetwork: fc.boolean(),
    terminating: fc.boolean(),
    nodeName: word,
    labels: fc.dictionary(
      word.filter((key) => key !== '__proto__'),
      word,
      { noNullPrototype: true },
    ),
  },
  {
    requiredKeys: ['kind', 'namespace', 'name', 'ips', 'phase', 'hostNetwork', 'terminating'],
  },
);

const { fields, of } = clusterRecords({ podNames: true, outside: true });

function storeOf(kind: ObjectKind, strings = new StringTable()): ObjectStore<ClusterRecord> {
  return new ObjectStore(kind, fields[kind], strings);
}

/** Stores an object's record, and compares what the store returns. */
function keeps(object: KubeObject): void {
  const { triggeredAt: _, ...record } = of(object);
  const store = storeOf(object.kind);
  store.put(record.namespace, record.name, [of(object)], []);
  assert.deepEqual([...store.objects()], [record]);
}

describe('stored records come back equal', () => {
  const named = <T extends KubeObject>(object: T): boolean => object.name !== '';
  test('for a service', () => fc.assert(fc.property(service.filter(named), keeps)));
  test('for an endpoint slice', () => fc.assert(fc.property(slice.filter(named), keeps)));
  test('for a pod', () => fc.assert(fc.property(pod.filter(named), keeps)));

  test('for a namespace, a node and a service import', () => {
    keeps({ kind: 'Namespace', name: 'default' });
    keeps({ kind: 'Node', name: 'a', zone: 'zone-a', prefixes: ['10.0.0.0/24', '192.0.2.1'] });
    keeps({
      kind: 'ServiceImport',
      namespace: 'default',
      name: 'db',
      type: 'Headless',
      ips: ['10.0.0.1'],
      ports: [{ name: 'sql', protocol: 'TCP', port: 5432 }],
    });
  });
});

test('10 000 services, 100 000 endpoints and 100 000 pods fit in 12 MiB', () => {
  const strings = new StringTable();
  const services = storeOf('Service', strings);
  const slices = storeOf('EndpointSlice', strings);
  const pods = storeOf('Pod', strings);
  for (let i = 0; i < 10_000; i++) {
    const namespace = `team-${i % 100}`;
    const name = `service-${i}`;
    const ports = [{ name: 'http', protocol: 'TCP', port: 80 }];
    const object: Service = {
      kind: 'Service',
      namespace,
      name,
      type: 'ClusterIP',
      clusterIPs: [`10.96.${i >> 8}.${i & 255}`],
      externalName: '',
      externalIPs: [],
      loadBalancer: [],
      ports,
    };
    services.put(namespace, name, [of(object)], []);
    const endpoints = [];
    for (let j = 0; j < 10; j++) {
      const number = i * 10 + j;
      const pod = `${name}-6d4cf56db6-${(number * 40_503 + 1_000_000).toString(36).slice(-5)}`;
      const ip = `10.${128 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
      endpoints.push({
        addresses: [ip],
        ready: true,
        hostname: '',
        nodeName: `node-${number % 500}.example.internal`,
        pod,
        zone: `zone-${number % 3}`,
      });
      pods.put(
        namespace,
        pod,
        [
          of({
            kind: 'Pod',
            namespace,
            name: pod,
            ips: [ip],
            phase: 'Running',
            hostNetwork: false,
            terminating: false,
          }),
        ],
        [],
      );
    }
    const slice = {
      kind: 'EndpointSlice',
      namespace,
      name: `${name}-x7k2p`,
      service: name,
    } as const;
    slices.put(namespace, slice.name, [of({ ...slice, ports, endpoints, triggeredAt: 0 })], []);
  }
  const bytes = services.bytes + slices.bytes + pods.bytes;
  assert.ok(bytes < 12 * 1024 * 1024, `${bytes} bytes`);
  assert.equal(pods.size, 100_000);
});
