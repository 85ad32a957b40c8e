import assert from 'node:assert/strict';
import { test } from 'node:test';
import { atOnce } from '../base/slices.ts';
import { TYPE } from '../wire/iana.ts';
import { parseName } from '../wire/name.ts';
import { differenceOf } from './difference.ts';
import type { PackedZone } from './packed-zone.ts';
import { ZoneBuilder } from './zone-builder.ts';

const origin = parseName('example.org.');
const name = parseName('a.example.org.');

/** Packs a zone that has one name with `texts` TXT records of about 5000 bytes each. */
function pack(serial: number, texts: number): PackedZone {
  const builder = new ZoneBuilder(origin);
  const soa = Buffer.alloc(22);
  soa.writeUInt32BE(serial, 2);
  builder.add(origin, TYPE.SOA, 60, soa);
  const text = Buffer.alloc(20 * 256, 0xff);
  for (let i = 0; i < texts; i++) {
    text.writeUInt32BE(i, 1);
    builder.add(name, TYPE.TXT, 60, text);
  }
  return builder.pack();
}

test('versions of a zone have no difference to send if one name has megabytes of records', () => {
  assert.equal(atOnce(differenceOf(pack(1, 500), pack(2, 501), 1e6))?.length, 1);
  assert.equal(atOnce(differenceOf(pack(1, 2000), pack(2, 2001), 1e6)), null);
});
