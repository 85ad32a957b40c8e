/** Examples of replies that arrive after their clients have retried or given up. */
import { healthy, type Passing } from './story.ts';
import type { Captured } from './packets.ts';
import { asked, ends, inOrder, played, pods, some, type Story } from './story-parts.ts';

const isOutside = ({ name }: Passing): boolean => !name.endsWith('.cluster.local.');

/** At the given times, replies for external names arrive half a second after the clients have timed out. */
const lateStory = (
  resolver: string,
  when: string,
  isLate: (passing: Passing) => boolean,
): Story => ({
  ...played(
    `${when} replies to external names come after five and a half seconds: ${resolver}`,
    'ND4003',
    () => pods(resolver, 2, { lookups: 30, everyMs: 1100 }),
    (passing) =>
      isOutside(passing) && isLate(passing)
        ? { ...healthy(passing), tookMs: 5500 + passing.random.integer(300) }
        : healthy(passing),
  ),
  without: ['ND3013', 'ND3007', 'ND3008'],
});

/** A DNS pod forwards the queries for its clients' search path, and sometimes waits for the final names. */
function stepsUpstream(seed: number): Captured[] {
  const ask = (
    atMs: number,
    name: string,
    nth: number,
    more: { rcode?: number; tookMs: number },
  ): Captured[] => asked(atMs, ends('10.244.3.2', 20_000 + nth, '192.0.2.53'), name, nth, more);
  return inOrder(
    Array.from({ length: 120 }, (_, i) => {
      const isSlow = i % 40 > 8;
      const name = `h${(i * 7 + seed) % 97}.example.com.`;
      const service = `db${i % 60}.shop.svc.cluster.local.`;
      return [
        ask(i * 230, `${name}corp.example.`, 3 * i, { rcode: 3, tookMs: 0.6 }),
        ask(i * 230 + 60, `${service}corp.example.`, 3 * i + 1, { rcode: 3, tookMs: 0.6 }),
        ask(i * 230 + 130, name, 3 * i + 2, { tookMs: isSlow ? 1100 : 0.6 }),
      ];
    }).flat(),
  );
}

export const lateStories: readonly Story[] = [
  ...['glibc', 'musl', 'go', 'c-ares'].map((resolver) =>
    lateStory(resolver, 'twice for some seconds', ({ atMs }) => atMs % 12_000 > 8500),
  ),
  {
    name: 'an upstream is slow in bursts, and gets single steps of search paths',
    code: 'ND4003',
    without: ['ND2008'],
    packets: (seed) => Promise.resolve(stepsUpstream(seed)),
  },
  lateStory('go', 'now and then', (passing) => passing.atMs < 24_000 && some(passing, 0.3)),
];
