import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { FLAG } from '../../wire/iana.ts';

/** 30 A records take 12 + 17 + 30 × 16 = 509 bytes, plus OPT. */
const worldWith = (line: string): Promise<World> =>
  makeWorld(`.:53 {\n ${line}\n erratic {\n drop 0\n large\n }\n}`);
const question = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.org. A`;

const truncated = async (world: World, options: Parameters<World['ask']>[1]): Promise<boolean> =>
  ((await world.ask(question, options)).flags & FLAG.TC) !== 0;

describe('bufsize', () => {
  test('a client that offers a larger size gets less', async () => {
    const world = await worldWith('bufsize 512');
    assert.equal(await truncated(world, { udpSize: 4096 }), true);
    await world.close();
    const without = await worldWith('errors');
    assert.equal(await truncated(without, { udpSize: 4096 }), false);
    await without.close();
  });

  test('without it, UDP replies are limited to 1232 bytes even if the client offers more', async () => {
    const hosts = Array.from({ length: 100 }, (_, i) => `192.0.2.${i} many.example.org`).join('\n');
    const world = (line: string): Promise<World> =>
      makeWorld(`.:53 {\n ${line}\n hosts {\n ${hosts}\n }\n}`);
    const count = async (line: string, options: Parameters<World['ask']>[1]): Promise<number> => {
      const one = await world(line);
      const { answer, flags } = await one.ask('many.example.org. A', options);
      assert.equal((flags & FLAG.TC) !== 0, answer.length < 100);
      await one.close();
      return answer.length;
    };
    for (const udpSize of [1232, 4096, 65_535])
      assert.equal(await count('errors', { udpSize }), 74);
    assert.equal(await count('errors', { udpSize: 65_535, proto: 'tcp' }), 100);
    assert.equal(await count('bufsize 4096', { udpSize: 65_535 }), 100);
    assert.equal(await count('bufsize 1400', { udpSize: 65_535 }), 84);
  });

  test('it never raises the size or affects clients without EDNS', async () => {
    const world = await worldWith('bufsize 4096');
    assert.equal(await truncated(world, { udpSize: 600 }), true);
    assert.equal(await truncated(world, {}), true);
    await world.close();
  });

  test('if a server block has two, the first one applies, as in CoreDNS', async () => {
    for (const second of ['bufsize 4096', 'bufsize x y']) {
      const world = await worldWith(`bufsize 512\n ${second}`);
      assert.equal(await truncated(world, { udpSize: 4096 }), true);
      await world.close();
    }
  });

  test('TCP is not limited', async () => {
    const world = await worldWith('bufsize 512');
    assert.equal(await truncated(world, { udpSize: 4096, proto: 'tcp' }), false);
    await world.close();
  });

  test('512 to 4096 is accepted, 1232 is the default', async () => {
    await (await worldWith('bufsize')).close();
    for (const size of ['511', '4097', 'big'])
      await assert.rejects(worldWith(`bufsize ${size}`), /plugin\/bufsize/);
  });
});
