import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG } from '../../wire/iana.ts';

const { AA, RA, RD } = FLAG;

const worldWith = (rules: string, more = ''): Promise<World> =>
  makeWorld(`.:53 {\n header {\n${rules}\n }\n ${more}\n erratic {\n drop 0\n delay 2 10ms\n }\n}`);

async function flags(world: World, sent = 0): Promise<number> {
  return (await world.ask('example.org.', { flags: sent })).flags & (AA | RA | RD);
}

describe('header', () => {
  test('reply flags are set and cleared, whether the reply arrives at once or later', async () => {
    const world = await worldWith('response set ra\nresponse clear AA');
    for (let i = 0; i < 4; i++) assert.equal(await flags(world), RA);
    await world.close();
  });

  test('if several rules affect one flag, the last one applies', async () => {
    const world = await worldWith(
      'response set ra aa\nresponse clear ra\nresponse clear aa\nresponse set aa',
    );
    assert.equal(await flags(world), AA);
    await world.close();
  });

  test('if a server block has two, the first one applies, as in CoreDNS', async () => {
    const world = await worldWith('response set ra\n}\nheader {\nresponse clear aa');
    assert.equal(await flags(world), AA | RA);
    await world.close();
  });

  test('RD in the reply can be set and cleared too', async () => {
    const set = await worldWith('response set rd');
    for (let i = 0; i < 2; i++) assert.equal(await flags(set), AA | RD);
    await set.close();
    const cleared = await worldWith('response clear rd');
    for (let i = 0; i < 2; i++) assert.equal(await flags(cleared, RD), AA);
    await cleared.close();
  });

  test('query flags are visible to plugins below, and the reply repeats RD', async () => {
    const world = await worldWith('query set rd');
    assert.equal(await flags(world), AA | RD);
    await world.close();
  });

  test('RD in the reply follows the rules even if rewrite changes the query', async () => {
    for (const delayed of ['drop 0', 'drop 0\n delay 1 10ms']) {
      const world = await makeWorld(
        `.:53 {
          rewrite name www.example.org example.org
          header {
            query set rd
            response clear aa
          }
          erratic {
            ${delayed}
          }
        }`,
      );
      const asked = async (sent: number): Promise<number> =>
        (await world.ask('www.example.org.', { flags: sent })).flags & (AA | RA | RD);
      assert.equal(await asked(0), RD, delayed);
      await world.close();
    }
    const cleared = await makeWorld(
      '. {\n rewrite type AAAA A\n header {\n response clear rd\n }\n erratic {\n drop 0\n }\n}',
    );
    const reply = await cleared.ask('example.org. AAAA', { flags: RD });
    assert.equal(reply.flags & RD, 0);
    await cleared.close();
  });

  test("errors use CoreDNS's wording", async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['set aa', /setting up rule: invalid selector=set should be query or response/],
      ['query', /setting up rule: no flag action provided/],
      ['query set', /setting up rule: invalid length for flags, at least one should be provided/],
      ['query toggle aa', /setting up rule: unknown flag action=toggle, should be set or clear/],
      ['response set zz', /setting up rule: unknown\/unsupported flag=zz/],
    ];
    for (const [rule, message] of cases) await assert.rejects(worldWith(rule), message);
    await assert.rejects(
      makeWorld('.:53 {\n header\n}'),
      /Wrong argument count or unexpected line ending after 'header'/,
    );
  });
});
