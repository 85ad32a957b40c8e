import assert from 'node:assert/strict';
import { isIP as runtimeIsIP } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  isIP,
  parseAddress,
  parseHostPort,
  splitHostPort,
  plainAddress,
  printAddress,
  printHostPort,
} from './ip.ts';

test('leading zeros in an IPv4 address are ignored, and IPv4-mapped IPv6 is IPv4', () => {
  for (const [written, plain] of [
    ['010.009.000.006', '10.9.0.6'],
    ['10.9.0.06', '10.9.0.6'],
    ['000.000.000.000', '0.0.0.0'],
    ['::ffff:10.9.0.6', '10.9.0.6'],
    ['::FFFF:a09:6', '10.9.0.6'],
    ['0:0:0:0:0:ffff:10.9.0.6', '10.9.0.6'],
    ['::ffff:0:10.9.0.6', '::ffff:0:10.9.0.6'],
    ['fd00::1', 'fd00::1'],
    ['None', 'None'],
    ['', ''],
  ] as const) {
    assert.equal(plainAddress(written), plain, written);
  }
});

test('an address in canonical form stays unchanged', () => {
  const address = fc
    .oneof(fc.ipV4(), fc.ipV6())
    .map((text) => printAddress(parseAddress(text)!))
    .filter((text) => !text.startsWith('::ffff:'));
  fc.assert(fc.property(address, (text) => assert.equal(plainAddress(text), text)));
});

test('isIP agrees with the runtime on validity and family', () => {
  for (const text of [
    ...[
      '',
      '.',
      ':',
      '::',
      ':::',
      '1.2.3',
      '1.2.3.4',
      '1.2.3.4.',
      '1.2.3.4.5',
      '01.2.3.4',
      '1.2.3.256',
      '0.0.0.0',
    ],
    ...[
      '1:2:3:4:5:6:7:8',
      '1:2:3:4:5:6:7::',
      '1:2:3:4:5:6:7:8::',
      '1:2:3:4::5:6:7:8',
      '::1.2.3.4',
      '1.2.3.4::',
    ],
    ...[
      '1:2:3:4:5:6:1.2.3.4',
      '1:2:3:4:5:6:7:1.2.3.4',
      '::1.2.3.4:1',
      '::12345',
      '::g',
      '1::2::3',
      '::ffff:01.2.3.4',
    ],
    ...[
      'fe80::1%eth0',
      'fe80::1%',
      'fe80::1%a_b',
      '1.2.3.4%eth0',
      '%eth0',
      'fe80::1%a%b',
      ' ::1',
      '::1\n',
      '１.2.3.4',
    ],
  ])
    assert.equal(isIP(text), runtimeIsIP(text), JSON.stringify(text));
  const damaged = fc
    .tuple(
      fc.oneof(fc.ipV4(), fc.ipV6(), fc.ipV4Extended()),
      fc.nat(40),
      fc.nat(2),
      fc.string({ unit: fc.constantFrom(...'0123456789abcF.:%gZ-_/ '.split('')), maxLength: 3 }),
    )
    .map(([text, at, gone, put]) => text.slice(0, at) + put + text.slice(at + gone));
  fc.assert(
    fc.property(damaged, (text) => assert.equal(isIP(text), runtimeIsIP(text))),
    { numRuns: 20_000 },
  );
});

test('a printed server parses back; invalid hosts and out-of-range ports are rejected', () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6()).map((text) => printAddress(parseAddress(text)!));
  const port = fc.integer({ min: 0, max: 65_535 });
  fc.assert(
    fc.property(address, port, (host, number) => {
      assert.deepEqual(parseHostPort(printHostPort(host, number)), { host, port: number });
      assert.deepEqual(parseHostPort(host), { host, port: null });
    }),
  );
  assert.deepEqual(parseHostPort('fe80::1%eth0'), { host: 'fe80::1%eth0', port: null });
  assert.deepEqual(parseHostPort('[fe80::1%eth0]:53'), { host: 'fe80::1%eth0', port: 53 });
  for (const text of ['', 'dns.example', 'dns.example:53', '192.0.2.1:65536', '192.0.2.1:', ':53'])
    assert.equal(parseHostPort(text), null, text);
});

test('a listen address has any host or none, with IPv6 in brackets', () => {
  for (const [text, host, port] of [
    [':9153', '', 9153],
    ['localhost:8080', 'localhost', 8080],
    ['[::1]:53', '::1', 53],
    ['dns.example', 'dns.example', null],
    ['[::]', '::', null],
  ] as const)
    assert.deepEqual(splitHostPort(text), { host, port });
  for (const text of ['::1', '::1:53', 'localhost:', 'localhost:http', '[::1', ':123456'])
    assert.equal(splitHostPort(text), null, text);
});
