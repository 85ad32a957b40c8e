import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../base/ip.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery, type Query } from '../../transport/query.ts';
import { MISSING, PairMemory, UNKNOWN } from './pair-memory.ts';

function query(type: number, client = '10.0.0.1', name = 'a.example.'): Query {
  const made = makeQuery(parseName(name), type);
  made.peer = parseAddress(client)!;
  made.peerAt = 0;
  made.family = made.peer.length === 4 ? 4 : 6;
  return made;
}

describe('a pair of queries', () => {
  test('ends as its first query did', () => {
    const pairs = new PairMemory(new VirtualClock());
    pairs.note(query(TYPE.A), 4);
    assert.equal(pairs.outcome(query(TYPE.AAAA)), 4);
    pairs.note(query(TYPE.A, 'fd00::1'), MISSING);
    assert.equal(pairs.outcome(query(TYPE.AAAA, 'fd00::1')), MISSING);
  });

  test('belongs to one client and one name, for five seconds', async () => {
    const clock = new VirtualClock();
    const pairs = new PairMemory(clock);
    pairs.note(query(TYPE.A), 4);
    assert.equal(pairs.outcome(query(TYPE.AAAA, '10.0.0.2')), UNKNOWN);
    assert.equal(pairs.outcome(query(TYPE.AAAA, '10.0.0.1', 'b.example.')), UNKNOWN);
    await clock.advance(5001);
    assert.equal(pairs.outcome(query(TYPE.AAAA)), UNKNOWN);
  });

  test('ends when the same type is queried again, which starts a new pair', () => {
    const pairs = new PairMemory(new VirtualClock());
    pairs.note(query(TYPE.A), 4);
    pairs.note(query(TYPE.AAAA), 4);
    assert.equal(pairs.outcome(query(TYPE.A)), UNKNOWN);
    pairs.note(query(TYPE.A), MISSING);
    assert.equal(pairs.outcome(query(TYPE.AAAA)), MISSING);
  });

  test('may include HTTPS as a third type, and no others', () => {
    const pairs = new PairMemory(new VirtualClock());
    pairs.note(query(TYPE.A), 2);
    pairs.note(query(TYPE.AAAA), 2);
    assert.equal(pairs.outcome(query(TYPE.HTTPS)), 2);
    assert.equal(pairs.outcome(query(TYPE.TXT)), UNKNOWN);
  });
});
