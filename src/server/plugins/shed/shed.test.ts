import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import { Collection } from '../../metrics/collection.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import { listenerCounters } from '../../transport/listener-counters.ts';
import type { WorkerContext } from '../../engine/contract/plugin.ts';
import { shed } from './shed.ts';

describe('shed', () => {
  test('its counts exist from the start for plain listeners, and the plugin is enabled', async () => {
    const world = await makeWorld('.:53 {\n shed\n prometheus localhost:0\n whoami\n}');
    assert.equal((await world.ask('example.org.')).rcode, 0);
    const metrics = world.metrics();
    for (const reason of ['query', 'response'])
      assert.match(
        metrics,
        new RegExp(
          `^coredns_shed_dropped_total\\{reason="${reason}",server="dns://:53"\\} 0$`,
          'm',
        ),
      );
    assert.match(metrics, /^coredns_plugin_enabled\{.*name="shed".*\} 1$/m);
    await world.close();
  });

  test('UDP losses are counted by reason while the directive exists', () => {
    const collection = new Collection();
    const metrics = new SharedRegistry((event) => collection.add('0', event));
    const counters = listenerCounters(metrics, 'dns://:53');
    const stops: (() => void)[] = [];
    const setUp = (): void => {
      const context: Partial<WorkerContext> = {
        servers: ['dns://:53', 'tls://:853'],
        metrics,
        counters: () => counters,
        onStop: (run) => stops.push(run),
      };
      shed.setup!({} as never, context as WorkerContext, () => null!);
    };
    const said = (): string[] =>
      collection
        .print('text')
        .split('\n')
        .filter((line) => line.startsWith('coredns_shed_dropped_total'));
    setUp();
    counters('udp').lost.add(3);
    counters('udp').dropped.add(2);
    counters('tcp').dropped.add(7);
    const first = stops.splice(0);
    // The new configuration starts before the old one ends.
    setUp();
    for (const stop of first) stop();
    counters('udp').lost.add(1);
    assert.equal(counters('udp').lost.value, 4);
    for (const stop of stops) stop();
    counters('udp').lost.add(100);
    assert.deepEqual(said(), [
      'coredns_shed_dropped_total{reason="query",server="dns://:53"} 4',
      'coredns_shed_dropped_total{reason="response",server="dns://:53"} 2',
    ]);
  });
});
