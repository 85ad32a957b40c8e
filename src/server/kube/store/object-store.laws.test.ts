import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  namespaceOf,
  type ObjectChange,
  type EndpointSlice,
  type KubeObject,
  type Pod,
  type Service,
} from './objects.ts';
import { StringTable } from './object-encoding.ts';
import { ObjectStore } from './object-store.ts';

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

function storeOf(objects: readonly KubeObject[]): ObjectStore {
  const store = new ObjectStore(objects[0]!.kind, new StringTable());
  const out: ObjectChange[] = [];
  for (const object of objects) store.put(namespaceOf(object), object.name, [object], out);
  return store;
}

describe('stored objects come back equal', () => {
  for (const [name, arbitrary] of [
    ['a service', service],
    ['an endpoint slice', slice],
    ['a pod', pod],
  ] as const) {
    test(name, () => {
      fc.assert(
        fc.property(arbitrary, (made) => {
          const object = JSON.parse(JSON.stringify(made)) as typeof made;
          assert.deepEqual([...storeOf([object]).objects()], [object]);
        }),
      );
    });
  }

  test('a namespace and a service import', () => {
    const namespaces = new ObjectStore('Namespace', new StringTable());
    namespaces.put('', 'default', [{ kind: 'Namespace', name: 'default' }], []);
    assert.deepEqual([...namespaces.objects()], [{ kind: 'Namespace', name: 'default' }]);
    const node = { kind: 'Node', name: 'a', milliCores: 3920, schedulable: true } as const;
    const place = { zone: 'zone-a', prefixes: ['10.0.0.0/24', '192.0.2.1'] };
    for (const each of [node, { ...node, place }])
      assert.deepEqual([...storeOf([each]).objects()], [each]);
    const found = {
      kind: 'ServiceImport',
      namespace: 'default',
      name: 'db',
      type: 'Headless',
      ips: ['10.0.0.1'],
      ports: [{ name: 'sql', protocol: 'TCP', port: 5432 }],
    } as const;
    assert.deepEqual([...storeOf([found]).objects()], [found]);
  });

  test('also when the string table is full', () => {
    const strings = new StringTable();
    for (let i = 0; i < StringTable.limit; i++) strings.id(`word-${i}`);
    const store = new ObjectStore('Pod', strings);
    const object: Pod = {
      kind: 'Pod',
      namespace: 'unheard-of',
      name: 'p',
      ips: [],
      phase: 'New',
      hostNetwork: false,
      terminating: false,
    };
    store.put(namespaceOf(object), object.name, [object], []);
    assert.deepEqual([...store.objects()], [object]);
  });
});

type Step =
  | { readonly do: 'put'; readonly key: number; readonly size: number; readonly ready: boolean }
  | { readonly do: 'remove'; readonly key: number }
  | { readonly do: 'list'; readonly keys: readonly number[]; readonly complete: boolean };

const key = fc.nat(30);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('put' as const),
    key,
    // Occasionally larger than a chunk.
    size: fc.oneof(
      { weight: 9, arbitrary: fc.nat(60) },
      { weight: 1, arbitrary: fc.constant(9000) },
    ),
    ready: fc.boolean(),
  }),
  fc.record({ do: fc.constant('remove' as const), key }),
  fc.record({
    do: fc.constant('list' as const),
    keys: fc.array(key, { maxLength: 20 }),
    complete: fc.boolean(),
  }),
);

function sliceOf(number: number, size: number, ready: boolean): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    namespace: `ns-${number % 3}`,
    name: `slice-${number}`,
    service: `service-${number}`,
    ports: [],
    endpoints: Array.from({ length: size }, (_, i) => ({
      addresses: [`10.0.${i >> 8}.${i & 255}`],
      ready,
      hostname: '',
      nodeName: '',
      // Each differs from its neighbour, so that a large slice takes a lot of memory.
      pod: `${(i * 7919) % 997}-some-pod`,
      zone: '',
    })),
    triggeredAt: 0,
  };
}

test('after any puts, removals and lists, a store equals a map and has reported exactly the differences', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const store = new ObjectStore('EndpointSlice', new StringTable());
      const model = new Map<string, EndpointSlice>();
      const followed = new Map<string, KubeObject>();
      const nameOf = (number: number): [string, string] => [`ns-${number % 3}`, `slice-${number}`];
      for (const one of steps) {
        const before = new Map(model);
        const out: ObjectChange[] = [];
        if (one.do === 'put') {
          const object = sliceOf(one.key, one.size, one.ready);
          store.put(...nameOf(one.key), [object], out);
          model.set(object.name, object);
        } else if (one.do === 'remove') {
          store.remove(...nameOf(one.key), out);
          model.delete(`slice-${one.key}`);
        } else {
          store.beginList();
          const listed = new Set<string>();
          for (const number of one.keys) {
            const object = model.get(`slice-${number}`) ?? sliceOf(number, 2, true);
            store.put(...nameOf(number), [object], out);
            model.set(object.name, object);
            listed.add(object.name);
          }
          if (one.complete) {
            store.endList(out);
            for (const name of model.keys()) if (!listed.has(name)) model.delete(name);
          }
        }
        for (const change of out) {
          if (change.verb === 'put') {
            assert.notDeepEqual(change.object, before.get(change.object.name), 'a real change');
            followed.set(change.object.name, change.object);
          } else {
            assert.ok(followed.delete(change.name), 'a real deletion');
          }
        }
      }
      const sorted = (objects: Iterable<KubeObject>): KubeObject[] =>
        [...objects].sort((a, b) => (a.name < b.name ? -1 : 1));
      assert.deepEqual(sorted(store.objects()), sorted(model.values()));
      assert.deepEqual(sorted(followed.values()), sorted(model.values()));
      assert.equal(store.size, model.size);
    }),
    { numRuns: 150 },
  );
});

test('a store whose objects come and go forever does not grow', () => {
  const store = new ObjectStore('EndpointSlice', new StringTable());
  for (let number = 0; number < 1000; number++) {
    store.put('default', `s-${number}`, [sliceOf(number, 50, true)], []);
  }
  const full = store.bytes;
  for (let round = 0; round < 8000; round++) {
    store.remove('default', `s-${round}`, []);
    store.put('default', `s-${round + 1000}`, [sliceOf(round, 50, true)], []);
  }
  assert.equal(store.size, 1000);
  assert.ok(store.bytes < 2 * full, `${store.bytes} bytes, ${full} at first`);
});

test('a slow reader of a pinned store misses nothing that stays', () => {
  const store = new ObjectStore('EndpointSlice', new StringTable());
  for (let number = 0; number < 3000; number++) {
    store.put(
      'default',
      `s-${number}`,
      [{ ...sliceOf(number, 20, true), name: `s-${number}` }],
      [],
    );
  }
  store.pin();
  const seen = new Set<string>();
  let round = 0;
  for (const object of store.objects()) {
    seen.add(object.name);
    // All odd-numbered ones are removed during the read.
    store.remove('default', `s-${2 * (round++ % 1500) + 1}`, []);
  }
  store.unpin();
  for (let number = 0; number < 3000; number += 2) assert.ok(seen.has(`s-${number}`));
  assert.equal(store.size, 1500);
});

test('10 000 services, 100 000 endpoints and 100 000 pods fit in 12 MiB', () => {
  const strings = new StringTable();
  const services = new ObjectStore('Service', strings);
  const slices = new ObjectStore('EndpointSlice', strings);
  const pods = new ObjectStore('Pod', strings);
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
    services.put(namespace, name, [object], []);
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
          {
            kind: 'Pod',
            namespace,
            name: pod,
            ips: [ip],
            phase: 'Running',
            hostNetwork: false,
            terminating: false,
          },
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
    slices.put(namespace, slice.name, [{ ...slice, ports, endpoints, triggeredAt: 0 }], []);
  }
  const bytes = services.bytes + slices.bytes + pods.bytes;
  assert.ok(bytes < 12 * 1024 * 1024, `${bytes} bytes`);
  assert.equal(pods.size, 100_000);
});
