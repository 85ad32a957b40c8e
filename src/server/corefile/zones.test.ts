import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { expandZone, followsPreferredSyntax, isDomainName, splitAddress } from './zones.ts';

describe('zones', () => {
  test('are converted to absolute lower case', () => {
    assert.deepEqual(expandZone('Example.ORG'), ['example.org.']);
    assert.deepEqual(expandZone('example.org.'), ['example.org.']);
    assert.deepEqual(expandZone('.'), ['.']);
  });

  test('lose scheme and port', () => {
    assert.deepEqual(expandZone('dns://example.org:1053'), ['example.org.']);
    assert.deepEqual(expandZone('tls://.:853'), ['.']);
  });

  test('an escaped dot at the end does not make a name absolute', () => {
    assert.deepEqual(expandZone('a\\.'), ['a\\..']);
    assert.deepEqual(expandZone('a\\\\.'), ['a\\\\.']);
  });

  test('an invalid escape makes a domain name invalid', () => {
    assert.equal(expandZone('\\300.example'), null);
    assert.deepEqual(expandZone('\\255.example'), ['\\255.example.']);
  });

  test('an invalid domain name is rejected', () => {
    for (const text of ['', ':53', 'a..b', '.a', `${'a'.repeat(64)}.org`, 'a\\', 'example.org:']) {
      assert.equal(expandZone(text), null, text);
    }
    assert.equal(expandZone('a'.repeat(63).concat('.').repeat(4)), null);
  });
});

describe('a CIDR becomes reverse zones', () => {
  const cases: [string, string[]][] = [
    ['10.0.0.0/8', ['10.in-addr.arpa.']],
    ['10.9.3.0/16', ['9.10.in-addr.arpa.']],
    ['10.9.3.18/32', ['18.3.9.10.in-addr.arpa.']],
    ['0.0.0.0/0', ['in-addr.arpa.']],
    ['10.0.0.0/15', ['0.10.in-addr.arpa.', '1.10.in-addr.arpa.']],
    [
      '172.16.0.0/14',
      [
        '16.172.in-addr.arpa.',
        '17.172.in-addr.arpa.',
        '18.172.in-addr.arpa.',
        '19.172.in-addr.arpa.',
      ],
    ],
    ['2001:db8::/32', ['8.b.d.0.1.0.0.2.ip6.arpa.']],
    ['2001:db8::/31', ['8.b.d.0.1.0.0.2.ip6.arpa.', '9.b.d.0.1.0.0.2.ip6.arpa.']],
    ['fd00::/7', ['c.f.ip6.arpa.', 'd.f.ip6.arpa.']],
  ];
  for (const [text, zones] of cases) {
    test(`${text} → ${zones.length}`, () => assert.deepEqual(expandZone(text), zones));
  }

  test('10.0.0.0/27 is 32 single-address zones, /25 is 128', () => {
    const small = expandZone('10.0.0.0/27')!;
    assert.equal(small.length, 32);
    assert.equal(small[31], '31.0.0.10.in-addr.arpa.');
    const large = expandZone('10.0.0.128/25')!;
    assert.equal(large.length, 128);
    assert.equal(large[0], '128.0.0.10.in-addr.arpa.');
    assert.equal(large[127], '255.0.0.10.in-addr.arpa.');
    assert.equal(new Set(large).size, 128);
  });

  test('a port is not read as part of it', () => {
    assert.deepEqual(splitAddress('10.0.0.0/24:1053'), {
      zones: ['0.0.10.in-addr.arpa.'],
      port: 1053,
    });
  });

  test('one that begins with a colon or a zero group is rejected', () => {
    assert.deepEqual(splitAddress('::/0'), { wrong: 'invalid CIDR ::/0' });
    assert.deepEqual(splitAddress('0:1::/32'), { wrong: 'invalid CIDR 0:1::/32' });
  });

  test('an impossible mask is read as a name', () => {
    assert.deepEqual(expandZone('10.0.0.0/33'), ['10.0.0.0/33.']);
  });
});

test('a name may have 255 bytes, with each escape counted as one', () => {
  const label = `${'a'.repeat(63)}.`;
  assert.equal(isDomainName(label.repeat(3) + 'a'.repeat(61)), true);
  assert.equal(isDomainName(label.repeat(3) + 'a'.repeat(62)), false);
  assert.equal(isDomainName(`${'\\065'.repeat(63)}.org`), true);
  assert.equal(isDomainName(`${'\\.'.repeat(64)}.org`), false);
});

test('the preferred syntax of RFC 1035: letters first, no underscore; the root and reverse zones are exempt', () => {
  const good = ['example.org.', '.', '10.in-addr.arpa.', '8.b.d.0.1.0.0.2.ip6.arpa.', 'a-b.c.'];
  const odd = ['_tcp.example.org.', '1password.com.', '-a.org.', 'a-.org.', 'http://x.'];
  assert.deepEqual(
    good.map(followsPreferredSyntax),
    good.map(() => true),
  );
  assert.deepEqual(
    odd.map(followsPreferredSyntax),
    odd.map(() => false),
  );
});
