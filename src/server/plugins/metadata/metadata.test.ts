import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { metadataProviders } from '../../engine/contract/ports.ts';
import { plugins } from '../../../../test/kit/plugins.ts';

let asked = 0;

const noting = definePlugin({
  syntax: directive({ name: 'noting', summary: 'notes the type', repeat: 'last' }),
  setup(_options, context, next) {
    context.offer(metadataProviders, (query, notes) => {
      asked++;
      notes.set('noting/type', String(query.type));
    });
    return next;
  },
});

const makeNotingWorld = (corefile: string): Promise<World> =>
  makeWorld(corefile, { plugins: [...plugins, noting] });

describe('metadata', () => {
  test("a block's providers are called once per query, before any plugin answers", async () => {
    const world = await makeNotingWorld(
      '.:53 {\n metadata\n log . "{/noting/type}"\n whoami\n noting\n}',
    );
    asked = 0;
    await world.ask('example.org. A');
    await world.ask('example.org. MX');
    assert.deepEqual(world.log, ['[INFO] 1', '[INFO] 15']);
    assert.equal(asked, 2);
    await world.close();
  });

  test('only names in its zones are handled', async () => {
    const world = await makeNotingWorld(
      '.:53 {\n metadata example.org\n log . "{/noting/type}"\n whoami\n noting\n}',
    );
    await world.ask('a.example.org. A');
    await world.ask('example.net. A');
    assert.deepEqual(world.log, ['[INFO] 1', '[INFO] -']);
    await world.close();
  });

  test('log/type and log/class are set by log', async () => {
    const world = await makeNotingWorld(
      '.:53 {\n metadata\n log . "{/log/type} {/log/class}"\n whoami\n}',
    );
    await world.ask('a.example.org. A');
    assert.deepEqual(world.log, ['[INFO] NOERROR success']);
    await world.close();
  });

  test('views use metadata, which is then not collected again', async () => {
    const world = await makeNotingWorld(
      `.:53 {
         metadata
         view mx {
           expr metadata('noting/type') == '15'
         }
         log . "mx {/view/name} {/noting/type}"
         whoami
         noting
       }
       .:53 {
         log . "other {/noting/type}"
         whoami
       }`,
    );
    asked = 0;
    await world.ask('example.org. MX');
    await world.ask('example.org. A');
    assert.deepEqual(world.log, ['[INFO] mx mx 15', '[INFO] other -']);
    assert.equal(asked, 2);
    await world.close();
  });
});
