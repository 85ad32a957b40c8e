/** Lookups that wait within a program, where no packet shows it. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, percent } from '../texts.ts';
import { MIN_THREAD_LOOKUPS } from '../thresholds/lateness.ts';

/** A program whose lookups wait for its few threads (libuv has four). */
export const fewThreads: FindingKind = {
  code: 'ND2009',
  title: 'Lookups wait in a program for one of its few threads',
  name: 'a program with few threads for lookups',
  inCapture({ clients, lookups }) {
    if (lookups < MIN_THREAD_LOOKUPS) return unknown('too few lookups');
    const waiting = clients.list.flatMap(({ address, threads }) => {
      const few = threads?.few ?? null;
      return few === null ? [] : [{ address, ...few }];
    });
    const [worst] = waiting.toSorted((one, other) => other.meanMs - one.meanMs);
    if (worst === undefined)
      return excluded('no client starts its next lookup just as another one ends');
    const { address, threads, full, handed, meanMs } = worst;
    return {
      code: this.code,
      title: this.title,
      severity: 'info',
      confidence: 0.7,
      seen: [
        `${address} has at most ${threads} lookups in progress. With ${threads - 1} in progress, the next one starts as soon as another has ended: ${percent(handed, full)} of ${full} times. Each takes ${Math.round(meanMs)} ms.`,
        ...(waiting.length > 1
          ? [
              `The same is true of ${listed(waiting.flatMap((each) => (each === worst ? [] : each.address)))}.`,
            ]
          : []),
      ],
      why: 'Many programs hand lookups to a few threads: Node.js (libuv) has four, which it also uses for files. While these wait for DNS, all other lookups wait inside the program. It sees seconds where DNS took milliseconds, and no packet shows it.',
      fix: [
        'In Node.js, set UV_THREADPOOL_SIZE=64, or use dns.resolve instead of dns.lookup. Keep connections open to need fewer lookups.',
        'Make each lookup faster: end names with a dot, use a cache on the node, and fix the other findings.',
      ],
      prove: `ndots capture FILE --ip ${address} -o flow: never more than ${threads} names at a time`,
      disproved:
        'the program has nothing else to look up at the time (a loop, or workers that look up one name after another)',
      exchanges: [],
      counted: new Map(
        waiting.map((each) => [each.address, clients.get(each.address)?.lookups ?? 0] as const),
      ),
    };
  },
};
