import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isLater } from '../../base/maybe.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { makeLog } from '../../base/log.ts';
import { bindDirective } from '../../corefile/syntax.ts';
import { parseCorefile } from '../../corefile/parse.ts';
import { SharedRegistry } from '../../metrics/shared-registry.ts';
import type { Next, Plugin, WorkerContext } from '../../engine/contract/plugin.ts';
import { recorded } from '../../engine/worker/recorded-link.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery, Query } from '../../transport/query.ts';
import { failure } from '../../wire/reply.ts';
import { top } from '../top/top.ts';
import { slowlog } from './slowlog.ts';

/** Returns the link of a plugin that is configured by just its name. */
function linkOf(plugin: Plugin, next: Next): Next {
  const { corefile } = parseCorefile({
    file: 'Corefile',
    text: `. {\n ${plugin.name}\n}`,
    dnsPort: 53,
    env: {},
    directives: [plugin.name],
    readFile: () => '',
    glob: () => [],
  });
  const zones = ['.'];
  const { options } = bindDirective(plugin.syntax, corefile.blocks[0]!.directives, { zones });
  const context: Partial<WorkerContext> = {
    clock: new VirtualClock(),
    metrics: new SharedRegistry(() => {}),
    log: makeLog(() => {}),
    onStart: () => {},
    onStop: () => {},
    offer: () => {},
    find: () => [],
  };
  return plugin.setup!(options[0] as never, context as WorkerContext, next);
}

test('a query that is recorded and counted leaves less than 8 bytes of garbage if answered at once', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const missing = failure(3, 'kubernetes');
  const chain = recorded(
    'cache',
    recorded('kubernetes', () => missing),
  );
  const link = linkOf(top, linkOf(slowlog, chain));
  const messages = Array.from({ length: 2000 }, (_, i) => {
    const name = `n${i}.example.com.default.svc.cluster.local.`;
    const { bytes, start, end } = makeQuery(parseName(name), 1);
    return bytes.slice(start, end);
  });
  const query = new Query();
  const peer = new Uint8Array(4);
  const run = (times: number): void => {
    for (let i = 0; i < times; i++) {
      const bytes = messages[i % messages.length]!;
      query.read(bytes, 0, bytes.length);
      query.proto = 'udp';
      query.peer = peer;
      peer[3] = i;
      peer[2] = i >> 8;
      if (isLater(link(query))) throw new Error('it waits');
    }
  };
  run(200_000);
  let least = Infinity;
  for (let round = 0; round < 3; round++) {
    collect();
    const before = process.memoryUsage().heapUsed;
    run(10_000);
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / 10_000);
  }
  assert.ok(least < 8, `${least} bytes per query`);
});
