import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { KubeObject } from '../../../kube/store/objects.ts';
import {
  endpoint,
  external,
  namespace,
  service,
  slice,
} from '../../../../../test/kit/kube-objects.ts';
import { answererOf, replicatedCluster } from '../../../../../test/kit/replicated-cluster.ts';
import { parseAddress } from '../../../base/ip.ts';
import { TYPE, typeName } from '../../../wire/iana.ts';
import { readMessage, type DnsRecord } from '../../../wire/message.ts';
import { parseName } from '../../../wire/name.ts';
import { printRecord } from '../../../wire/print.ts';
import { makeQuery } from '../../../transport/query.ts';
import { failure, Reply } from '../../../wire/reply.ts';
import { MessageWriter } from '../../../wire/writer.ts';
import { wholeZone } from '../../../zone/transfer-reply.ts';
import type { RecordStream, Transferable } from '../../../zone/transfer-source.ts';
import type { KubernetesAnswerer } from './answer.ts';
import { clusterTransfers } from './transfer-zone.ts';

const zones = ['cluster.local.', 'clusterset.local.'].map((text, number) => ({
  text,
  wire: parseName(text),
  multicluster: number === 1,
}));
const places = ['web.one', 'db.one', 'web.two', 'db.gone'];
const hosts = ['', 'h1', 'h2', '10-0-0-1'];
const ports = [
  { name: 'http', protocol: 'TCP', port: 80 },
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'dns', protocol: 'TCP', port: 53 },
  { name: '', protocol: 'TCP', port: 99 },
];

const place = fc.constantFrom(...places);
const address = fc.constantFrom('10.0.0.1', '10.0.0.2', 'fd00::1', 'fd00::', 'ext.example.org');
const somePorts = fc.subarray(ports);
const endpoints = fc.array(
  fc.record({
    address,
    hostname: fc.constantFrom(...hosts),
    ready: fc.boolean(),
  }),
  { maxLength: 4 },
);

const object: fc.Arbitrary<KubeObject> = fc.oneof(
  fc
    .tuple(place, fc.uniqueArray(address, { minLength: 1, maxLength: 2 }), somePorts)
    .map(([at, ips, of]) => service(at, ips, { ports: of })),
  fc.tuple(place, somePorts).map(([at, of]) => service(at, 'None', { ports: of })),
  fc
    .tuple(place, fc.constantFrom('ext.example.org', '10.0.0.1', 'bad..name'))
    .map(([at, name]) => external(at, name)),
  fc
    .tuple(place, fc.integer({ min: 1, max: 3 }), endpoints, somePorts)
    .map(([at, number, list, of]) => ({
      ...slice(
        at,
        list.map(({ address: ip, ...more }) => endpoint(ip, more)),
      ),
      name: `${at.split('.')[0]}-${number}`,
      ports: of,
    })),
  fc
    .tuple(place, fc.constantFrom([], ['10.0.0.1'], ['10.0.0.2', 'fd00::1']), somePorts)
    .map(([at, ips, of]) => ({
      kind: 'ServiceImport' as const,
      namespace: at.split('.')[1]!,
      name: at.split('.')[0]!,
      type: ips.length === 0 ? ('Headless' as const) : ('ClusterSetIP' as const),
      ips,
      ports: of,
    })),
  fc
    .tuple(place, fc.constantFrom('east', 'west'), endpoints, somePorts)
    .map(([at, cluster, list, of]) => ({
      ...slice(
        at,
        list.map(({ address: ip, ...more }) => endpoint(ip, more)),
      ),
      name: `${cluster}-${at.split('.')[0]}`,
      service: '',
      importedService: at.split('.')[0]!,
      cluster,
      ports: of,
    })),
);

const names = ['', 'dns.', 'ns.dns.', 'dns-version.', 'svc.', 'one.svc.'].concat(
  places.flatMap((at) =>
    [
      '',
      '_http._tcp.',
      '_dns._udp.',
      '_dns._tcp.',
      ...['h1.', 'h2.', '10-0-0-1.', '10-0-0-2.', 'fd00--1.', 'fd00--0.', 'ext-example-org.'],
    ].map((prefix) => `${prefix}${at}.svc.`),
  ),
);

function writeAll(stream: RecordStream, writer: MessageWriter): void {
  for (let step = stream.next(); step !== 'end'; step = stream.next())
    if (step === 'record') stream.write(writer);
}

function records(zone: Transferable): DnsRecord[] {
  const writer = new MessageWriter();
  writer.begin(1, 0);
  const stream = wholeZone(zone);
  writeAll(stream, writer);
  return [...readMessage(writer.take()).answer];
}

function answer(answerer: KubernetesAnswerer, name: string, type: number): DnsRecord[] {
  const query = makeQuery(parseName(name), type);
  query.proto = 'tcp';
  const reply = answerer.answer(query, () => failure(5, 'next'));
  assert.ok(reply instanceof Reply);
  return [...readMessage(reply.bytes, reply.start, reply.end).answer];
}

const asText = (all: readonly DnsRecord[]): string[] => all.map(printRecord).toSorted();
const types = [TYPE.SOA, TYPE.NS, TYPE.TXT, TYPE.A, TYPE.AAAA, TYPE.SRV];

test('a transfer contains exactly what queries for its names return', () => {
  let withRecords = 0;
  fc.assert(
    fc.property(
      fc.array(object, { maxLength: 20 }),
      fc.boolean(),
      fc.subarray(['10.0.0.1', '10.9.9.9', 'fd00::9']),
      fc.constantFrom(null, new Set(['one'])),
      (objects, ignoreEmpty, addresses, namespaces) => {
        const { cluster } = replicatedCluster([namespace('one'), namespace('two'), ...objects]);
        const own = addresses.map((text) => parseAddress(text)!);
        const parts = { zones, ttl: 5, namespaces, ignoreEmpty, own };
        const answerer = answererOf(cluster, parts);
        const source = clusterTransfers({ cluster, ...parts });
        for (const { wire, text } of zones) {
          const all = records(source.find(wire, wire.length)!);
          assert.deepEqual(all.at(-1), all[0]);
          const given = all.slice(1);
          withRecords += given.length;
          const owners = new Set([
            ...given.map(({ name }) => name),
            ...(text === 'cluster.local.' ? names.map((name) => `${name}${text}`) : []),
          ]);
          for (const name of owners) {
            const ofName = given.filter((one) => one.name === name);
            const cname = answer(answerer, name, TYPE.CNAME);
            const expected = types.flatMap((type) => answer(answerer, name, type));
            // An alias must be the only record, and its target's records are not in the zone.
            const ofPort = name.startsWith('_');
            const services = answer(answerer, name, TYPE.SRV);
            const rest = ofPort ? services : cname.length > 0 ? cname : expected;
            const isEndpointOfCluster =
              ofName.length === 0 &&
              cluster.serviceNamed(name.split('.')[2]!, name.split('.')[1]!)?.form === 'cluster';
            if (isEndpointOfCluster) continue;
            assert.deepEqual(
              asText(ofName),
              asText(rest),
              `${name} ${ofName.map(({ type }) => typeName(type)).join()}`,
            );
          }
        }
      },
    ),
    { numRuns: 200 },
  );
  assert.ok(withRecords > 1000);
});

test('a transfer in progress keeps the state at its start', () => {
  const objects = [
    namespace('one'),
    ...Array.from({ length: 50 }, (_, i) => service(`web${i}.one`, '10.0.0.1')),
    service('db.one', 'None'),
    slice('db.one', ['10.0.0.1', '10.0.0.2']),
  ];
  const { cluster, source } = replicatedCluster(objects);
  const parts = { cluster, zones, ttl: 5, namespaces: null, ignoreEmpty: false, own: [] };
  const [{ wire }] = zones as [(typeof zones)[0]];
  const find = (): Transferable => clusterTransfers(parts).find(wire, wire.length)!;
  const before = asText(records(find()));
  const stream = wholeZone(find());
  const writer = new MessageWriter();
  writer.begin(1, 0);
  for (let i = 0; i < 5 && stream.next() === 'record'; i++) stream.write(writer);
  for (const one of objects) source.remove(one);
  source.put(namespace('one'), service('new.one', '10.0.0.3'));
  writeAll(stream, writer);
  assert.deepEqual(asText([...readMessage(writer.take()).answer]), before);
});

test('nothing is transferred before everything has been listed, and reverse zones never are', () => {
  const { cluster, source } = replicatedCluster([], { synced: false });
  const reverse = { text: 'in-addr.arpa.', wire: parseName('in-addr.arpa.'), multicluster: false };
  const { find } = clusterTransfers({
    cluster,
    zones: [zones[0]!, reverse],
    ttl: 5,
    namespaces: null,
    ignoreEmpty: false,
    own: [],
  });
  const { wire } = zones[0]!;
  assert.equal(find(wire, wire.length), null);
  source.complete();
  assert.notEqual(find(wire, wire.length), null);
  assert.equal(find(reverse.wire, reverse.wire.length), null);
  assert.equal(find(parseName('web.one.svc.cluster.local.'), 27), null);
});
