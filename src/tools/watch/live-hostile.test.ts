import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addressRecord, back, dnsMessage, udpPacket } from '../../../test/kit/packets.ts';
import { STORY_START } from '../../../test/kit/story.ts';
import type { LiveInput } from './live-input.ts';
import { LiveModel } from './live-model.ts';
import { viewNames } from './view.ts';

/** Feeds a query, and its reply half a millisecond later. */
function ask(input: LiveInput, client: string, name: string, atMs: number, id: number): void {
  const ends = { from: client, fromPort: 30_000 + (id % 20_000), to: '10.96.0.10', toPort: 53 };
  const answer = [addressRecord(name, '192.0.2.1')];
  const query = udpPacket(ends, dnsMessage(name, 'A', { id }));
  const reply = udpPacket(back(ends), dnsMessage(name, 'A', { id, reply: true, answer }));
  input.reading.takeNetwork(query, 0, query.length, atMs, 0);
  input.reading.takeNetwork(reply, 0, reply.length, atMs + 0.5, 0);
}

test('a clock that is three minutes, or ten years, ahead is corrected and reported', () => {
  for (const aheadMs of [180_000, 10 * 365 * 86_400_000, -240_000]) {
    const model = new LiveModel();
    const right = model.open('right');
    const wrong = model.open('wrong');
    model.advance(STORY_START);
    for (let second = 0; second < 40; second++) {
      const nowMs = STORY_START + second * 1000;
      ask(right, '10.0.0.1', 'a.example.com.', nowMs, 2 * second);
      ask(wrong, '10.0.0.2', 'b.example.com.', nowMs + aheadMs, 2 * second + 1);
      model.advance(nowMs + 500);
    }
    const now = model.view({ view: 'now' });
    const [one, other] = now.inputs;
    assert.deepEqual([one!.aheadMs, one!.odd], [0, '']);
    assert.ok(Math.abs(other!.aheadMs - aheadMs) < 1000, `${other!.aheadMs}`);
    assert.match(
      other!.odd,
      aheadMs > 0 ? /ahead; its times are corrected/ : /behind; its times are corrected/,
    );
    assert.ok(now.changes.rows.some(({ text }) => text.startsWith('wrong: its clock is ')));
    // All of one side's queries, and those of the other except for the first looks at the slow clock.
    assert.ok(now.queries >= 75, `${now.queries} queries`);
    assert.equal(now.lost, 0);
    assert.equal(model.view({ view: 'clients', id: '10.0.0.1' }).rows[0]!.queries, 40);
  }
});

test('the clock of the machine is set back by an hour: the window starts again and continues', () => {
  const model = new LiveModel();
  const input = model.open('eth0');
  for (const startMs of [STORY_START, STORY_START - 3_600_000])
    for (let second = 0; second < 20; second++) {
      model.advance(startMs + second * 1000);
      ask(input, '10.0.0.1', 'a.example.com.', startMs + second * 1000 + 10, second);
    }
  const now = model.view({ view: 'now' });
  assert.equal(now.queries, 20);
  assert.ok(now.changes.rows.some(({ text }) => text.includes('the clock was set back')));
});

test('a client that floods with unique names displaces no name that others look up', () => {
  const model = new LiveModel({ limits: { names: 64, clients: 16, detailBytes: 64 * 1024 } });
  const input = model.open('eth0');
  model.advance(STORY_START);
  let id = 0;
  for (let turn = 0; turn < 1500; turn++) {
    const atMs = STORY_START + turn * 10;
    ask(input, '10.0.0.66', `x${turn}.flood.example.`, atMs, id++);
    ask(input, '10.0.0.66', `y${turn}.flood.example.`, atMs + 1, id++);
    if (turn % 3 === 0) ask(input, `10.0.0.${turn % 5}`, 'shop.example.com.', atMs + 2, id++);
  }
  model.advance(STORY_START + 20_000);
  const names = model.view({ view: 'names' });
  assert.equal(names.rows[0]!.name, 'shop.example.com.');
  assert.ok(names.rows[0]!.lookups <= 500 && names.rows[0]!.lookups + names.error >= 500);
  assert.ok(names.leftOut > 0 && names.error > 0 && names.total <= 128);
  assert.equal(model.view({ view: 'clients' }).rows[0]!.queries, 3000);
  const { memory } = model.view({ view: 'now' });
  assert.ok(memory.usedBytes <= memory.limitBytes, `${memory.usedBytes} of ${memory.limitBytes}`);
  assert.match(
    memory.dropped,
    /lookups were dropped early, because stored lookups are limited to 64 KiB/,
  );
  const lookups = model.view({ view: 'lookups', most: 10 });
  assert.ok(lookups.sampledShare < 1 && lookups.leftOut > 0);
  assert.equal(lookups.shown, 10);
});

test('names with escape sequences and markup stay data, without a control character', () => {
  const model = new LiveModel();
  const input = model.open('eth0');
  model.advance(STORY_START);
  ask(input, '10.0.0.1', '\\027[31m<script>alert\\0401\\041</script>.example.', STORY_START, 1);
  model.advance(STORY_START + 30_000);
  for (const view of viewNames) {
    const text = JSON.stringify(model.view({ view }));
    assert.ok(Array.from(text).every((letter) => letter >= ' ' && letter !== '\u007f'));
  }
  assert.match(model.view({ view: 'names' }).rows[0]!.name, /^\\027\[31m<script>/);
});

test('every list reports packets that the kernel lost, until they leave the window', () => {
  const model = new LiveModel({ limits: { windowMs: 10_000 } });
  const input = model.open('eth0');
  model.advance(STORY_START);
  input.lostByKernel(7);
  model.advance(STORY_START + 1000);
  for (const view of ['lookups', 'clients', 'names', 'servers'] as const)
    assert.equal(model.view({ view }).lostByKernel, 7, view);
  assert.equal(model.view({ view: 'now' }).lostByKernel, 7);
  model.advance(STORY_START + 12_000);
  assert.equal(model.view({ view: 'names' }).lostByKernel, 0);
  assert.equal(model.view({ view: 'names' }).inputs[0]!.lostByKernel, 7);
  input.close('the interface is gone');
  const [row] = model.view({ view: 'now' }).inputs;
  assert.deepEqual([row!.state, row!.why], ['failed', 'the interface is gone']);
});

test('an input that claims impossible losses does not hide those of another', () => {
  const model = new LiveModel();
  const [right, wrong] = [model.open('right'), model.open('wrong')];
  model.advance(STORY_START);
  for (const packets of [Number.MAX_SAFE_INTEGER, 0, 1e308, -5, NaN]) wrong.lostByKernel(packets);
  model.advance(STORY_START + 1000);
  const before = model.view({ view: 'now' }).lostByKernel;
  right.lostByKernel(7);
  model.advance(STORY_START + 2000);
  assert.equal(model.view({ view: 'now' }).lostByKernel, before + 7);
  assert.ok(before < 1e12, `${before}`);
});
