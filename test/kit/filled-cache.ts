/** A cache full of names. */
import { seededRandom } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { bindDirective } from '../../src/server/corefile/syntax.ts';
import { parseCorefile } from '../../src/server/corefile/parse.ts';
import { SharedRegistry } from '../../src/server/metrics/shared-registry.ts';
import type { Next, WorkerContext } from '../../src/server/engine/contract/plugin.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { makeQuery } from '../../src/server/transport/query.ts';
import { fromUpstream } from '../../src/server/wire/upstream.ts';
import { MessageWriter } from '../../src/server/wire/writer.ts';
import { replyBytes } from './upstream.ts';
import { cache } from '../../src/server/plugins/cache/cache.ts';

/** Only the cache's link, before `next`. */
export function cacheLink(
  lines: string,
  next: Next,
  clock: VirtualClock = new VirtualClock(),
): Next {
  const { corefile } = parseCorefile({
    file: 'Corefile',
    text: `. {\n ${lines}\n}`,
    dnsPort: 53,
    env: {},
    directives: ['cache'],
    readFile: () => '',
    glob: () => [],
  });
  const { options } = bindDirective(cache.syntax, corefile.blocks[0]!.directives, { zones: ['.'] });
  const context: Partial<WorkerContext> = {
    zones: ['.'],
    view: '',
    clock,
    random: seededRandom(1),
    log: makeLog(() => {}),
    metrics: new SharedRegistry(() => {}),
    writer: new MessageWriter(),
    onStop: () => {},
    onMessage: () => {},
    offer: () => {},
    find: () => [],
  };
  return cache.setup!(options[0] as never, context as WorkerContext, next);
}

/** A cache filled with `count` names for measurements: its link and the names. */
export function filledCache(count: number): {
  readonly link: Next;
  readonly names: readonly string[];
} {
  const link = cacheLink('cache 3600', (query) => {
    const bytes = replyBytes(query, { answer: ['@ 3600 A 10.96.0.10'] });
    const reply = fromUpstream(bytes, 0, bytes.length, 'bench');
    if (reply instanceof Error) throw reply;
    return reply;
  });
  const names = Array.from(
    { length: count },
    (_, i) => `svc-${i}.namespace-${i % 17}.svc.cluster.local.`,
  );
  for (const name of names) void link(makeQuery(parseName(name), 1));
  return { link, names };
}
