import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STORY_START } from '../../../test/kit/story.ts';
import type { SeenLookup } from '../capture/pair/seen-exchange.ts';
import { LookupRing } from './lookup-ring.ts';

const lookup = (name: string, startMs: number): SeenLookup =>
  ({ client: '10.0.0.1', name, startMs, endMs: startMs, exchanges: [] }) as never;

test('lookups are stored after the newest segment was dropped because it was older than the others', () => {
  const ring = new LookupRing(1024 * 1024, 60_000);
  ring.add(lookup('first.example.', STORY_START));
  ring.add(lookup('old.example.', STORY_START - 3_600_000));
  ring.advance(STORY_START);
  ring.add(lookup('last.example.', STORY_START + 1));
  assert.deepEqual(
    [...ring.newest(0)].map(({ name, startMs }) => [name, startMs - STORY_START]),
    [
      ['last.example.', 1],
      ['first.example.', 0],
    ],
  );
});
