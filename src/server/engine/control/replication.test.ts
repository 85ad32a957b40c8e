import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { directive, type Syntax } from '../../corefile/syntax.ts';
import { dataOf } from '../../wire/message.ts';
import { RCODE, TYPE } from '../../wire/iana.ts';
import { a } from '../../wire/record/table.ts';
import { SECTION } from '../../wire/writer.ts';
import type { Replica } from '../contract/data-set.ts';
import type { Plugin } from '../contract/plugin.ts';

/** A plugin with a data set of numbers, whose workers answer with the count they have. */
function numbers(count: number): {
  readonly plugin: Plugin;
  readonly events: string[];
  publish(...more: number[]): void;
} {
  const events: string[] = [];
  const truth = new Set(Array.from({ length: count }, (_, n) => n));
  let publish: (changes: number[]) => void = () => undefined;
  class Count implements Replica<number> {
    readonly known = new Set<number>();
    begin(): void {
      events.push('snapshot');
    }
    apply(changes: readonly number[]): void {
      for (const one of changes) this.known.add(one);
    }
    complete(): void {
      events.push(`complete with ${this.known.size}`);
    }
  }
  const plugin: Plugin = {
    name: 'numbers',
    syntax: directive({ name: 'numbers', summary: 'for tests', repeat: 'once' }) as Syntax,
    control: (_options, context) => {
      context.replicated('numbers/all', (open) => {
        const set = open<number>({ snapshot: () => truth, size: () => 1000 });
        publish = (changes) => set.publish(changes);
        return {
          close: () => {
            events.push('closed');
            set.close();
          },
        };
      });
    },
    setup: (_options, { replica, writer }) => {
      const { known } = replica('numbers/all', () => new Count());
      return (query) => {
        writer.reply(query, 0);
        const size = known.size;
        writer.record(SECTION.answer, null, TYPE.A, 1, Uint8Array.of(0, 0, size >> 8, size & 255));
        return writer.finish(RCODE.NOERROR, 'numbers');
      };
    },
  };
  return {
    plugin,
    events,
    publish(...more) {
      for (const one of more) truth.add(one);
      publish(more);
    },
  };
}

async function known(world: World): Promise<string | undefined> {
  const [record] = (await world.ask('x. A')).answer;
  return record === undefined ? undefined : dataOf(record, a)?.address;
}

describe('a data set', () => {
  test('is complete in a worker when the first query arrives, and follows every change', async () => {
    const { plugin, publish } = numbers(200);
    const world = await makeWorld('. {\n numbers\n}', { plugins: [plugin] });
    assert.equal(await known(world), '0.0.0.200');
    publish(1000, 1001);
    await world.clock.advance(1);
    assert.equal(await known(world), '0.0.0.202');
    await world.close();
  });

  test('outlives a reload without being sent again, and ends when no plugin requests it', async () => {
    const { plugin, events, publish } = numbers(30);
    const other: Plugin = { ...plugin, name: 'other', syntax: { ...plugin.syntax, name: 'other' } };
    delete (other as Partial<Plugin>).control;
    const none = { ...other, setup: undefined } as unknown as Plugin;
    const world = await makeWorld('. {\n numbers\n}', { plugins: [plugin, none] });
    world.setCorefile('. {\n numbers\n}\na.test. {\n}');
    assert.ok(await world.clock.run(world.server.reload()));
    publish(1000);
    await world.clock.advance(1);
    assert.equal(await known(world), '0.0.0.31');
    assert.deepEqual(events, ['snapshot', 'complete with 30']);
    world.setCorefile('. {\n other\n}');
    assert.ok(await world.clock.run(world.server.reload()));
    assert.equal(events.at(-1), 'closed');
    await world.close();
  });

  test('appears in the metrics', async () => {
    const { plugin } = numbers(30);
    const world = await makeWorld('. {\n numbers\n}', { plugins: [plugin] });
    const metrics = world.metrics();
    assert.match(metrics, /^ndots_replication_snapshots_total\{set="numbers"\} 1$/m);
    assert.match(metrics, /^ndots_replication_backlog_bytes\{set="numbers"\} 0$/m);
    assert.match(metrics, /^ndots_replication_overflows_total\{set="numbers"\} 0$/m);
    await world.close();
  });
});
