import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAddress, printAddress } from '../../../base/ip.ts';
import type { Endpoint } from '../../../kube/store/objects.ts';
import { printName } from '../../../wire/name.ts';
import {
  addressLabel,
  EndpointReader,
  encodeEndpoints,
  parsePorts,
  printPorts,
  labelledAddress,
} from './endpoint-encoding.ts';
import { placeHash } from './place-hash.ts';

const address = fc.oneof(
  fc.ipV4(),
  fc
    .ipV6()
    .map((text) => printAddress(parseAddress(text)!))
    .filter((text) => !text.includes('.')),
);
const domain = fc.constantFrom('db.example.org', 'a-b.c', 'x.example.com.');
const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);
const hinted = fc.array(label, { minLength: 1, maxLength: 8 });
const endpoint: fc.Arbitrary<Endpoint> = fc.record(
  {
    addresses: fc.array(fc.oneof({ weight: 5, arbitrary: address }, domain), {
      minLength: 1,
      maxLength: 2,
    }),
    ready: fc.boolean(),
    hostname: fc.oneof(fc.constant(''), label),
    nodeName: label,
    pod: fc.oneof(fc.constant(''), label, fc.constant('p'.repeat(64)), fc.constant('web.1')),
    zone: fc.oneof(fc.constant(''), label, fc.constant('zone.example.com')),
    forZones: hinted,
    forNodes: hinted,
  },
  { requiredKeys: ['addresses', 'ready', 'hostname', 'nodeName', 'pod', 'zone'] },
);

test('encoded endpoints are the ready addresses with their host names and zones', () => {
  fc.assert(
    fc.property(fc.array(endpoint, { maxLength: 20 }), fc.boolean(), (endpoints, podNames) => {
      const wanted = endpoints
        .filter(({ ready }) => ready)
        .flatMap(({ addresses, hostname, pod, zone }) =>
          addresses.map((text) => {
            const byPod = podNames && pod.length < 64 && !pod.includes('.') ? pod : '';
            const bare = text.replace(/\.$/, '');
            return { text: bare, host: hostname || byPod || addressLabel(bare), zone };
          }),
        );
      const reader = new EndpointReader().over(encodeEndpoints(endpoints, podNames));
      const found = [];
      while (reader.next()) {
        const { bytes, addressAt, addressLength } = reader;
        const text = reader.named
          ? printName(bytes.subarray(addressAt, addressAt + addressLength)).slice(0, -1)
          : printAddress(bytes, addressAt, addressLength);
        const zone = Buffer.from(
          reader.bytes.subarray(reader.zoneAt, reader.zoneAt + reader.zoneLength),
        ).toString();
        found.push({ text, host: reader.host, zone });
      }
      assert.deepEqual(found, wanted);
    }),
  );
});

test('hints are decoded: an endpoint applies to the zones and nodes they name, and to no others', () => {
  fc.assert(
    fc.property(fc.array(endpoint, { maxLength: 20 }), label, (endpoints, other) => {
      const entries = endpoints
        .filter(({ ready }) => ready)
        .flatMap(({ addresses, forZones = [], forNodes = [] }) =>
          addresses.map(() => ({ forZones, forNodes })),
        );
      const names = [...entries.flatMap((each) => [...each.forZones, ...each.forNodes]), other];
      const reader = new EndpointReader().over(encodeEndpoints(endpoints, false));
      for (const { forZones, forNodes } of entries) {
        assert.ok(reader.next());
        assert.deepEqual([reader.zoneHints, reader.nodeHints], [forZones.length, forNodes.length]);
        for (const name of names) {
          assert.equal(reader.isForZone(placeHash(name)), forZones.includes(name));
          assert.equal(reader.isForNode(placeHash(name)), forNodes.includes(name));
        }
        assert.ok(!reader.isForZone('') && !reader.isForNode(''), 'an unknown place');
      }
    }),
  );
});

test('a hint takes six bytes, and endpoints without hints take none', () => {
  const size = (more: Partial<Endpoint>): number =>
    encodeEndpoints(
      [
        {
          addresses: ['10.0.0.1'],
          ready: true,
          hostname: '',
          nodeName: 'n',
          pod: 'p',
          zone: '',
          ...more,
        },
      ],
      false,
    ).length;
  assert.equal(size({}), 5);
  assert.equal(size({ forZones: ['eu-west-1a'] }), 5 + 1 + 6);
  assert.equal(size({ forZones: ['eu-west-1a'], forNodes: ['ip-10-0-0-7.internal'] }), 5 + 1 + 12);
});

test('an address encoded as a label can be decoded', () => {
  fc.assert(
    fc.property(address, (text) => {
      const found = labelledAddress(addressLabel(text));
      assert.ok(found);
      assert.equal(printAddress(found), text);
    }),
  );
});

test('a label that is not an address in canonical form is rejected', () => {
  for (const text of [
    '',
    'a',
    '1-2-3',
    '1-2-3-4-5',
    '01-2-3-4',
    '256-0-0-1',
    'web-0',
    'fd00-0-0-0-0-0-0-1',
    '--',
  ]) {
    assert.equal(labelledAddress(text), null, text);
  }
});

test('ports keep their name, protocol and number in text form, in lower case', () => {
  const ports = [
    { name: 'HTTP', protocol: 'TCP', port: 80 },
    { name: '', protocol: 'UDP', port: -1 },
  ];
  assert.deepEqual(parsePorts(printPorts(ports)), [
    { name: 'http', protocol: 'tcp', port: 80 },
    { name: '', protocol: 'udp', port: -1 },
  ]);
});

test('an empty port list counts as one port without a number', () => {
  assert.deepEqual(parsePorts(printPorts([])), [{ name: '', protocol: '', port: -1 }]);
});
