/** Stories of replies that come when their clients have asked again, or given up. */
import { healthy, type Passing } from './story.ts';
import { played, pods, some, type Story } from './story-parts.ts';

const isOutside = ({ name }: Passing): boolean => !name.endsWith('.cluster.local.');

/** Of names of outside, when it is said so, the replies come half a second after the clients' time is over. */
const lateStory = (
  resolver: string,
  when: string,
  isLate: (passing: Passing) => boolean,
): Story => ({
  ...played(
    `${when} replies to names of outside come after five and a half seconds: ${resolver}`,
    'ND4003',
    () => pods(resolver, 2, { lookups: 30, everyMs: 1100 }),
    (passing) =>
      isOutside(passing) && isLate(passing)
        ? { ...healthy(passing), tookMs: 5500 + passing.random.integer(300) }
        : healthy(passing),
  ),
  without: ['ND3013', 'ND3007', 'ND3008'],
});

/** Stories of late replies. */
export const lateStories: readonly Story[] = [
  ...['glibc', 'musl', 'go', 'c-ares'].map((resolver) =>
    lateStory(resolver, 'twice for some seconds', ({ atMs }) => atMs % 12_000 > 8500),
  ),
  lateStory('go', 'now and then', (passing) => passing.atMs < 24_000 && some(passing, 0.15)),
];
