import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { FLAG, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery } from '../query.ts';
import { writeQuery } from './write-query.ts';

describe('a query sent upstream', () => {
  test('has the flags meant only for upstreams, and a different id', () => {
    const query = makeQuery(parseName('a.example.'), TYPE.A);
    query.flags = FLAG.RD;
    query.upstreamFlags = FLAG.AD;
    const out = new Uint8Array(100);
    const length = writeQuery(query, 0x1234, out, 7);
    assert.equal(length, query.end - query.start);
    assert.deepEqual([...out.subarray(7, 11)], [0x12, 0x34, FLAG.RD >> 8, FLAG.AD]);
    assert.deepEqual(
      out.subarray(11, 7 + length),
      query.bytes.subarray(query.start + 4, query.end),
    );
    assert.equal(query.flags, FLAG.RD);
  });
});
