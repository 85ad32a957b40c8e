/**
 * The cost of names that are chosen to collide: `node bench/hash-flood.ts`. For FNV-1a, such names are easy to find
 * whatever the start value, because its XOR only changes the low byte. As in a flood, each name is queried once, misses
 * the cache, and is stored.
 */
import { isLater } from '../src/server/base/maybe.ts';
import { makeQuery, Query } from '../src/server/transport/query.ts';
import type { Reply } from '../src/server/wire/reply.ts';
import { fromUpstream } from '../src/server/wire/upstream.ts';
import { cacheLink } from '../test/kit/filled-cache.ts';
import { replyBytes } from '../test/kit/upstream.ts';
import { figure, smoke } from './kit/figures.ts';

const BLOCKS = 14;
const BLOCK = 5;
/** The length of the first label. The second label has the other ten bytes. */
const LABEL = 60;
const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Each block has two texts that leave FNV-1a in the same state, so there are 2^14 names with one hash. */
function collidingNames(low: number): Uint8Array[] {
  let state = Math.imul(low ^ LABEL, 0x01000193);
  let tried = 0;
  const blocks: (readonly [string, string])[] = [];
  while (blocks.length < BLOCKS) {
    if (blocks.length * BLOCK === LABEL)
      state = Math.imul(state ^ (BLOCKS * BLOCK - LABEL), 0x01000193);
    for (const seen = new Map<number, string>(); ; tried++) {
      const text = textOf(tried);
      let next = state;
      for (let i = 0; i < BLOCK; i++) next = Math.imul(next ^ text.charCodeAt(i), 0x01000193);
      const other = seen.get(next);
      if (other === undefined) {
        seen.set(next, text);
        continue;
      }
      blocks.push([other, text]);
      state = next;
      break;
    }
  }
  return Array.from({ length: 2 ** BLOCKS }, (_, number) =>
    nameOf(blocks.map((pair, at) => pair[(number >> at) & 1]!).join('')),
  );
}

/** Five letters that are different for each number. */
function textOf(number: number): string {
  let rest = (Math.imul(number, 0x9e3779b1) >>> 0) % letters.length ** BLOCK;
  let text = '';
  for (let i = 0; i < BLOCK; i++) {
    text += letters[rest % letters.length]!;
    rest = Math.floor(rest / letters.length);
  }
  return text;
}

function nameOf(text: string): Uint8Array {
  const labels = [text.slice(0, LABEL), text.slice(LABEL), 'example'];
  return Uint8Array.from([...labels.flatMap((label) => [label.length, ...Buffer.from(label)]), 0]);
}

function randomNames(): Uint8Array[] {
  let state = 1;
  const letter = (): string => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return letters[(state >>> 8) % letters.length]!;
  };
  return Array.from({ length: 2 ** BLOCKS }, () =>
    nameOf(Array.from({ length: BLOCKS * BLOCK }, letter).join('')),
  );
}

/** An NXDOMAIN reply for each name. All have the same length. */
const template = replyBytes(makeQuery(nameOf('x'.repeat(BLOCKS * BLOCK)), 1), {
  rcode: 'NXDOMAIN',
  authority: ['example. 300 SOA ns.example. host.example. 1 7200 3600 86400 300'],
});
function denied(query: Query): Reply {
  const bytes = template.slice();
  for (let i = 0; i < query.nameLength; i++) bytes[12 + i] = query.folded[i]!;
  const reply = fromUpstream(bytes, 0, bytes.length, 'bench');
  if (reply instanceof Error) throw reply;
  return reply;
}

/** The CPU time per query in nanoseconds, as the minimum of several rounds. */
function cost(names: readonly Uint8Array[]): number {
  const messages = names.map((name) => {
    const { bytes, start, end } = makeQuery(name, 1);
    return bytes.slice(start, end);
  });
  let best = Infinity;
  const query = new Query();
  for (let round = 0; round < (smoke ? 1 : 8); round++) {
    const link = cacheLink('cache 3600', denied);
    const began = process.cpuUsage();
    for (const bytes of messages) {
      query.read(bytes, 0, bytes.length);
      query.arrived = 2000;
      if (isLater(link(query))) throw new Error('not at once');
    }
    const { user, system } = process.cpuUsage(began);
    best = Math.min(best, ((user + system) * 1000) / messages.length);
  }
  return best;
}

const random = cost(randomNames());
let worst = 0;
for (const low of smoke ? [0xc5] : [0xc5, 0, 77, 255])
  worst = Math.max(worst, cost(collidingNames(low)));
figure('random names', random, 'ns');
figure('names made to collide', worst, 'ns');
figure('names made to collide, to random ones', worst / random, '×', { atMost: 1.2 });
