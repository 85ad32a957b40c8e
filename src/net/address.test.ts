import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import fc from 'fast-check';

import { parseHostPort, parseUpstream, printUpstream } from './address.ts';

describe('upstream addresses', () => {
  for (const [text, want] of [
    ['8.8.8.8', 'dns 8.8.8.8 53 '],
    ['8.8.8.8:5353', 'dns 8.8.8.8 5353 '],
    ['dns://8.8.8.8', 'dns 8.8.8.8 53 '],
    ['DNS://8.8.8.8:54', 'dns 8.8.8.8 54 '],
    ['2001:db8::1', 'dns 2001:db8::1 53 '],
    ['[2001:db8::1]', 'dns 2001:db8::1 53 '],
    ['[2001:db8::1]:54', 'dns 2001:db8::1 54 '],
    ['fe80::1%eth0', 'dns fe80::1%eth0 53 '],
    ['[fe80::1%eth0]:54', 'dns fe80::1%eth0 54 '],
    ['tls://9.9.9.9', 'tls 9.9.9.9 853 '],
    ['tls://9.9.9.9%dns.quad9.net', 'tls 9.9.9.9 853 dns.quad9.net'],
    ['tls://9.9.9.9:8853%dns.quad9.net', 'tls 9.9.9.9 8853 dns.quad9.net'],
    ['tls://9.9.9.9%dns.quad9.net:8853', 'tls 9.9.9.9 8853 dns.quad9.net'],
    ['tls://2620:fe::fe%dns.quad9.net:8853', 'tls 2620:fe::fe 8853 dns.quad9.net'],
    ['https://1.1.1.1%cloudflare-dns.com', 'https 1.1.1.1 443 cloudflare-dns.com'],
  ] as const) {
    test(`${text} is ${want.trim()}`, () => {
      const got = parseUpstream(text);
      assert.ok(got !== null);
      assert.equal(`${got.scheme} ${got.host} ${got.port} ${got.serverName}`, want);
    });
  }

  for (const text of [
    '',
    'example.org',
    '/etc/resolv.conf',
    '8.8.8.8:0',
    '8.8.8.8:65536',
    '8.8.8.8:',
    '[8.8.8.8]:53',
    '2001:db8::1:53:99999',
    'grpc://8.8.8.8',
    '256.1.1.1',
    ':53',
    'tls://dns.quad9.net',
  ]) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseUpstream(text), null));
  }

  test('what is printed reads back the same', () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6());
    const serverName = fc.constantFrom('', 'dns.example', 'a.b.example');
    const port = fc.integer({ min: 1, max: 65535 });
    fc.assert(
      fc.property(
        fc.constantFrom('dns', 'tls', 'https'),
        host,
        port,
        serverName,
        (scheme, ip, number, name) => {
          const place = {
            scheme,
            host: ip,
            port: number,
            serverName: scheme === 'dns' ? '' : name,
          } as const;
          assert.deepEqual(parseUpstream(printUpstream(place)), place);
        },
      ),
    );
  });

  test('host and port take the default port only without one', () => {
    assert.deepEqual(parseHostPort('::1', 7), { host: '::1', port: 7 });
    assert.deepEqual(parseHostPort('[::1]:8', 7), { host: '::1', port: 8 });
    assert.equal(parseHostPort('host:8', 7), null);
  });
});
