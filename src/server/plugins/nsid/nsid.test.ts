import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { OPTION } from '../../wire/iana.ts';
import { findOption } from '../../wire/edns-options.ts';
import { Query } from '../../transport/query.ts';

/** Builds `example.org. A` with these EDNS options. */
function questionWith(...options: readonly (readonly [number, Uint8Array])[]): Uint8Array {
  const data = options.flatMap(([code, bytes]) => [
    code >> 8,
    code & 255,
    bytes.length >> 8,
    bytes.length & 255,
    ...bytes,
  ]);
  return Uint8Array.from([
    ...[0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1],
    ...[7, ...Buffer.from('example'), 3, ...Buffer.from('org'), 0, 0, 1, 0, 1],
    ...[0, 0, 41, 4, 208, 0, 0, 0, 0, data.length >> 8, data.length & 255, ...data],
  ]);
}

async function optionOf(world: World, question: Uint8Array, code: number): Promise<string | null> {
  const reply = await world.send(question);
  // A reply can be parsed as a query once QR is cleared, and only the options matter here.
  reply![2]! &= 0x7f;
  const query = new Query();
  query.read(reply!, 0, reply!.length);
  const found = findOption(query.bytes, query.optionsStart, query.optionsEnd, code);
  return found === null ? null : Buffer.from(found).toString();
}

const none = new Uint8Array(0);

describe('nsid', () => {
  test('clients that request it get the identifier, whether the reply arrives at once or later', async () => {
    const world = await makeWorld('.:53 {\n nsid Use The Force\n erratic {\n delay 2 10ms\n }\n}');
    for (let i = 0; i < 2; i++) {
      assert.equal(
        await optionOf(world, questionWith([OPTION.NSID, none]), OPTION.NSID),
        'Use The Force',
      );
    }
    await world.close();
  });

  test("the client's other options are echoed as without nsid", async () => {
    const world = await makeWorld('.:53 {\n nsid me\n erratic {\n drop 0\n }\n}');
    const padding = Buffer.from('8 bytes!');
    const question = questionWith(
      [OPTION.PADDING, padding],
      [OPTION.NSID, none],
      [OPTION.ECS, Uint8Array.of(0, 1, 0, 0)],
    );
    assert.equal(await optionOf(world, question, OPTION.NSID), 'me');
    assert.equal(await optionOf(world, question, OPTION.PADDING), '8 bytes!');
    assert.equal(await optionOf(world, question, OPTION.ECS), null);
    await world.close();
  });

  test('clients that do not request it get none, and the default is the host name', async () => {
    const world = await makeWorld('.:53 {\n nsid\n erratic {\n drop 0\n }\n}');
    assert.equal(await optionOf(world, questionWith(), OPTION.NSID), null);
    assert.equal(await optionOf(world, questionWith([OPTION.NSID, none]), OPTION.NSID), hostname());
    await world.close();
  });

  test('failures include it too', async () => {
    const world = await makeWorld('.:53 {\n nsid me\n any\n}');
    assert.equal(await optionOf(world, questionWith([OPTION.NSID, none]), OPTION.NSID), 'me');
    await world.close();
  });
});
