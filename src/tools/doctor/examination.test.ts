import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stories } from '../../../test/kit/stories.ts';
import type { Captured } from '../../../test/kit/packets.ts';
import { Reading, usualPorts } from '../capture/read/reading.ts';
import { Examination } from './examination.ts';

/** A capture of one of the stories. */
async function failing(): Promise<{
  readonly packets: readonly Captured[];
  readonly code: string;
}> {
  const story = stories.find(({ code, lines }) => code === 'ND3002' && lines === undefined)!;
  return { packets: await story.packets(1), code: story.code! };
}

function feed(
  { events, domains }: Pick<Examination, 'events' | 'domains'>,
  packets: readonly Captured[],
  afterMs = 0,
): Reading {
  const reading = new Reading(events, usualPorts, { domains });
  for (const { timeMs, bytes, port = 0 } of packets)
    reading.takeNetwork(bytes, 0, bytes.length, timeMs + afterMs, port);
  reading.end();
  return reading;
}

test('asked twice, an examination answers the same, and computes again only after an event', async () => {
  const { packets, code } = await failing();
  const examination = new Examination();
  const reading = feed(examination, packets);
  examination.noteUnread(reading);
  const first = examination.diagnosis();
  assert.equal(first.findings[0]?.code, code);
  assert.equal(examination.diagnosis(), first);
  examination.noteUnread(reading);
  const second = examination.diagnosis();
  assert.notEqual(second, first);
  assert.deepEqual(second, first);
  feed(examination, packets, 60_000);
  assert.notDeepEqual(examination.diagnosis(), first);
});
