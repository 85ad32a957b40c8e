/**
 * The cost of forward and cache for a forwarded query: `node bench/forward-link.ts`. The upstream answers from memory
 * within the same turn, so the result includes everything but sockets. That is: computing the key, the in-flight entry,
 * copying the query, selecting the upstream, and checking and storing the reply.
 */
import { seededRandom } from '../src/server/base/random.ts';
import { systemClock } from '../src/server/base/clock.ts';
import { makeLog } from '../src/server/base/log.ts';
import { isLater, whenSettled } from '../src/server/base/maybe.ts';
import { parseCorefile } from '../src/server/corefile/parse.ts';
import { bindDirective } from '../src/server/corefile/syntax.ts';
import { SharedRegistry } from '../src/server/metrics/shared-registry.ts';
import type { Network } from '../src/server/transport/upstream-address.ts';
import { cache } from '../src/server/plugins/cache/cache.ts';
import { forward } from '../src/server/plugins/forward/forward.ts';
import type { Next, Plugin, WorkerContext } from '../src/server/engine/contract/plugin.ts';
import { parseName } from '../src/server/wire/name.ts';
import { makeQuery, Query } from '../src/server/transport/query.ts';
import { failure } from '../src/server/wire/reply.ts';
import { MessageWriter } from '../src/server/wire/writer.ts';
import { replyBytes } from '../test/kit/upstream.ts';

const template = replyBytes(makeQuery(parseName('n0000000.bench.'), 1), {
  answer: ['@ 300 A 192.0.2.1'],
});
const network: Network = {
  upstream: (parts) => ({
    parts,
    close() {},
    start(exchange, _, now) {
      const { query } = exchange;
      const bytes = template.slice();
      bytes.set(query.bytes.subarray(query.start + 12, query.start + 12 + query.nameLength), 12);
      setImmediate(() => exchange.replied(bytes, 0, bytes.length, false, true, now));
    },
  }),
};

function link(plugin: Plugin, lines: string, next: Next): Next {
  const { corefile } = parseCorefile({
    file: 'Corefile',
    text: `. {\n ${lines}\n}`,
    dnsPort: 53,
    env: {},
    directives: [plugin.name],
    readFile: () => '',
    glob: () => [],
  });
  const { options } = bindDirective(plugin.syntax, corefile.blocks[0]!.directives, {
    zones: ['.'],
  });
  const upstream = { scheme: 'dns', host: '192.0.2.53', port: 53, serverName: '' };
  const context: Partial<WorkerContext> = {
    zones: ['.'],
    view: '',
    clock: systemClock,
    random: seededRandom(1),
    log: makeLog(() => {}),
    metrics: new SharedRegistry(() => {}),
    writer: new MessageWriter(),
    network,
    onStart: () => {},
    onStop: () => {},
    offer: () => {},
    find: () => [],
    // Only forward's control part sends messages.
    onMessage: (handler) =>
      plugin.name === 'forward' && handler({ lists: [[upstream]], workers: 1 }),
    path: (file) => file,
  };
  return plugin.setup!(options[0] as never, context as WorkerContext, next);
}

const names = Array.from({ length: 200_000 }, (_, i) => {
  const { bytes, start, end } = makeQuery(parseName(`n${String(i).padStart(7, '0')}.bench.`), 1);
  return bytes.slice(start, end);
});

async function nsPerQuery(chain: Next): Promise<number> {
  const query = new Query();
  const run = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i += 100) {
      let waiting = 100;
      let done = (): void => {};
      const all = new Promise<void>((resolve) => {
        done = resolve;
      });
      const one = (): void => {
        if (--waiting === 0) done();
      };
      for (let j = i; j < i + 100; j++) {
        const bytes = names[j % names.length]!;
        query.read(bytes, 0, bytes.length);
        query.arrived = systemClock.now();
        const reply = chain(query);
        if (isLater(reply)) whenSettled(reply, one, one, null);
        else one();
      }
      await all;
    }
  };
  await run(50_000);
  const began = process.hrtime.bigint();
  await run(names.length);
  return Number(process.hrtime.bigint() - began) / names.length;
}

const end: Next = () => failure(2, '');
const alone = await nsPerQuery(link(forward, 'forward . 192.0.2.53', end));
const both = await nsPerQuery(link(cache, 'cache 30', link(forward, 'forward . 192.0.2.53', end)));
console.log(
  `forward ${(alone / 1000).toFixed(2)} µs, with cache ${(both / 1000).toFixed(2)} µs per forwarded query, sockets aside`,
);
