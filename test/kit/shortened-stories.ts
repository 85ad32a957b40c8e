/** Examples as shorter captures, in which the end of the fault is missing or there is nothing to compare with. */
import { handfulStories } from './handful-stories.ts';
import type { Captured } from './packets.ts';
import { partStories } from './part-stories.ts';
import { healthy, play } from './story.ts';
import { standstillStories } from './standstill-stories.ts';
import { searchStories } from './search-stories.ts';
import { begun, corpResolvConf, played, pods, some, type Story } from './story-parts.ts';

/** The first part of the packets, by time. */
function firstPart(packets: readonly Captured[], part: number): readonly Captured[] {
  const [first, last] = [packets[0]!.timeMs, packets.at(-1)!.timeMs];
  return packets.filter(({ timeMs }) => timeMs < first + part * (last - first));
}

/**
 * The example whose name starts with `begins`, with packets truncated to 96 bytes minus the header of `tcpdump -i any`.
 */
function ofBeginnings(among: readonly Story[], begins: string): Story {
  const story = among.find(({ name }) => name.startsWith(begins))!;
  return {
    ...story,
    name: `${story.name}; the capture has the beginnings of packets`,
    packets: async (seed) => begun(await story.packets(seed), 76),
  };
}

/** The example whose name starts with `begins`, cut off at a fraction of its time. */
function endsAt(begins: string, part: number, among: readonly Story[] = partStories): Story {
  const story = among.find(({ name }) => name.startsWith(begins))!;
  return {
    ...story,
    name: `${story.name}; the capture ends after ${part} of the time`,
    packets: async (seed) => firstPart(await story.packets(seed), part),
  };
}

/** No external server replies, not even to queries for one of the nodes' search domains. */
export const outsideIsSilent: Story = played(
  'no server outside of the cluster answers, including for a search domain of the nodes',
  'ND3010',
  () => [
    ...pods('go', 4, { lookups: 8, everyMs: 9000, resolvConf: corpResolvConf }),
    ...pods('glibc', 3, { from: 40, lookups: 8, everyMs: 9000, resolvConf: corpResolvConf }),
    ...pods('musl', 3, { from: 60, lookups: 8, everyMs: 9000, resolvConf: corpResolvConf }),
  ],
  (passing) => (passing.name.endsWith('.cluster.local.') ? healthy(passing) : { lost: true }),
);

export const shortenedStories: readonly Story[] = [
  ...[
    'a search domain fails for some seconds, several times: one client (glibc)',
    'a search domain refuses for some seconds, several times',
    'a search domain answers SERVFAIL to a third of the lookups that pass it',
    'a search domain answers SERVFAIL to two queries of five, and the capture has one client: glibc',
    'queries below a search domain get no reply for some seconds, or on retry: go',
  ].map((begins) => ofBeginnings(searchStories, begins)),
  ...['go', 'c-ares', 'glibc'].map((client) =>
    ofBeginnings(
      handfulStories,
      `nothing of more than 512 bytes ever comes over UDP, and the capture has one client: ${client}`,
    ),
  ),
  ofBeginnings([outsideIsSilent], outsideIsSilent.name),
  ofBeginnings(partStories, 'the address of the name server has disappeared from the link, fd00'),
  ofBeginnings(partStories, 'a new name that two DNS pods behind one address cache'),
  endsAt('one of two DNS pods, seen at the switch, lacks names that are rarely queried', 0.5),
  endsAt('a policy cuts three pods off for a while', 0.6),
  endsAt('clean: a DNS pod is added', 0.6),
  {
    ...endsAt('the only server hangs four times', 0.6, standstillStories),
    seen: /sent no replies for a while 2 times/,
  },
  {
    name: 'a search domain that no server answers for, in a capture of three seconds',
    code: 'ND2003',
    without: ['ND4001'],
    packets: async (seed) =>
      firstPart(
        await play(
          [
            ...pods('go', 4, { resolvConf: corpResolvConf }),
            ...pods('glibc', 3, { from: 40, resolvConf: corpResolvConf }),
          ],
          (passing) =>
            passing.name.endsWith('.corp.example.') ? { lost: true } : healthy(passing),
          { seed },
        ),
        0.6,
      ),
  },
  played(
    'an old server answers FORMERR to every query with EDNS, and no client sends queries without',
    'ND4009',
    () => pods('go', 2),
    () => ({ rcode: 1, tookMs: 0.4 }),
  ),
  {
    name: 'clean: of two thousand queries those of half a second are lost, and others of that moment are answered',
    code: null,
    packets: (seed) =>
      play(
        pods('go', 8, { lookups: 50, everyMs: 300 }),
        (passing) =>
          passing.atMs > 9000 && passing.atMs < 9500 && some(passing, 0.2)
            ? { lost: true }
            : healthy(passing),
        { seed },
      ),
  },
];
