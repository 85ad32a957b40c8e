import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TYPE } from '../../../server/wire/iana.ts';
import { isReverseLookup } from './reverse-lookup.ts';

describe('a question that turns an address into a name', () => {
  test('is of type PTR', () => {
    assert.ok(isReverseLookup('7.0.60.10.in-addr.arpa.', TYPE.PTR));
    assert.ok(!isReverseLookup('7.0.60.10.in-addr.arpa.', TYPE.SOA));
  });

  test('is known by the beginning of its name', () => {
    for (const name of [
      'a.3.0.0.0.0.0.0…',
      'a.3.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6…',
      '7.0.60.10.in-ad…',
    ])
      assert.ok(isReverseLookup(name, 0), name);
  });

  test('a cut name of another kind, or a cut address as written, is not one', () => {
    for (const name of [
      'a.b.c.shop.svc.clus…',
      '10.0.60.7.shop.svc.cl…',
      'g.3.0.0.0.0.0.0…',
      'a.3.0.0…',
      '',
    ])
      assert.ok(!isReverseLookup(name, 0), name);
  });
});
