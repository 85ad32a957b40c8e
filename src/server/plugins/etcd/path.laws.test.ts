import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { foldName, parseName, printName } from '../../wire/name.ts';
import { matches, nameOf, normalPrefix, pathOf } from './path.ts';
import { leaseOf, packService, unpackService } from './skydns-service.ts';

describe('paths of names', () => {
  test('a path can be converted back to the name if its labels are plain', () => {
    const label = fc.string({
      unit: fc.constantFrom('a', 'b', '-', '_', '9'),
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.array(label, { minLength: 1, maxLength: 6 }), (labels) => {
        const name = parseName(`${labels.join('.')}.`);
        const { path, base } = pathOf(name);
        assert.equal(base, path);
        assert.equal(printName(nameOf(path)!), printName(name));
        assert.ok(matches(path, path.split('/')));
        assert.ok(matches(`${path}/more`, path.split('/')));
      }),
    );
  });

  test('every name has a path without redundant slashes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 63 }), (label) => {
        const name = foldName(Buffer.from([label.length, ...label, 0]));
        assert.match(pathOf(name).path, /^\/[\x20-\x7e]+$/);
      }),
    );
  });

  test('wildcards are * and any, and the part before the first one is searched', () => {
    for (const [name, path, base] of [
      ['a.*.b.test', '/test/b/*/a', '/test/b'],
      ['any.test', '/test/any', '/test'],
      ['many.test', '/test/many', '/test/many'],
      ['*', '/*', ''],
    ] as const)
      assert.deepEqual(pathOf(parseName(name)), { path, base });
    assert.ok(matches('/test/b/x/a/more', '/test/b/*/a'.split('/')));
    assert.ok(!matches('/test/b/x', '/test/b/*/a'.split('/')));
    assert.ok(!matches('/test/b/x/aa', '/test/b/*/a'.split('/')));
  });

  test("the directive's path can be written in any form", () => {
    for (const text of ['skydns', '/skydns', 'skydns/', '//skydns//'])
      assert.equal(normalPrefix(text), '/skydns');
    assert.equal(normalPrefix('/'), '');
    assert.equal(normalPrefix('dns/prod'), '/dns/prod');
  });
});

describe('SkyDNS values', () => {
  test('packing and unpacking returns the same value', () => {
    const int = (most: number) => fc.integer({ min: 0, max: most });
    const service = fc.record({
      host: fc.constantFrom('', '10.0.0.1', '2001:db8::1', 'web.shop.test', 'Web.Shop.test.'),
      port: int(65_535),
      priority: fc.integer({ min: 1, max: 65_535 }),
      weight: int(2 ** 31 - 1),
      text: fc.string({ maxLength: 40 }),
      mail: fc.boolean(),
      ttl: int(2 ** 31 - 1),
      targetstrip: int(255),
      group: fc.string({ maxLength: 10 }),
    });
    fc.assert(
      fc.property(service, fc.bigInt({ min: 0n, max: 2n ** 63n }), (value, lease) => {
        const packed = packService(Buffer.from(JSON.stringify(value)), lease);
        assert.equal(typeof packed, 'string');
        const found = unpackService('/k', packed as string);
        assert.equal(found.port, value.port);
        assert.equal(found.priority, value.priority);
        assert.equal(found.weight, value.weight);
        assert.equal(found.ttl, value.ttl);
        assert.equal(found.mail, value.mail);
        assert.equal(found.targetStrip, value.targetstrip);
        assert.equal(found.text.toString(), Buffer.from(value.text).toString());
        assert.equal(found.group, Buffer.from(value.group).toString('latin1'));
        assert.equal(found.lease, leaseOf(packed as string));
        const id = found.lease === '' ? 0n : Buffer.from(found.lease, 'latin1').readBigUInt64BE();
        assert.equal(id, lease);
      }),
    );
  });

  test('any bytes are a record or a reason', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        const packed = packService(Buffer.from(text), 0n);
        if (typeof packed === 'string') unpackService('/k', packed);
        else assert.match(packed.detail, /^its? /);
      }),
    );
  });

  test('field names are case-insensitive, null counts as absent, and numbers are clamped', () => {
    const read = (value: object) => {
      const packed = packService(Buffer.from(JSON.stringify(value)), 0n);
      assert.equal(typeof packed, 'string', JSON.stringify(packed));
      return unpackService('/k', packed as string);
    };
    assert.equal(read({ Host: '10.0.0.1', PORT: 7, ttl: null }).port, 7);
    assert.equal(read({ priority: 0 }).priority, 10);
    assert.equal(read({ priority: 70_000, weight: -1 }).priority, 65_535);
    assert.equal(read({ host: 'a.test', port: 70_000 }).hasPort, false);
    assert.deepEqual(read({ host: '::ffff:10.0.0.1' }).host, Buffer.from([10, 0, 0, 1]));
  });
});
