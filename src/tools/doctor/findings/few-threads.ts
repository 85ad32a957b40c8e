/** Lookups that wait inside a program, where no packet shows it. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, percent } from '../texts.ts';
import { MIN_THREAD_LOOKUPS } from '../thresholds/lateness.ts';

export const fewThreads: FindingKind = {
  code: 'ND2009',
  title: 'Lookups wait inside a program because it has only a few resolver threads',
  name: 'a program with too few resolver threads',
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
      severity: 'info',
      confidence: 0.7,
      seen: [
        `${address} has at most ${threads} lookups in progress. In ${percent(handed, full)} of ${full} cases, the next one starts as soon as another ends. Each takes ${Math.round(meanMs)} ms.`,
        waiting.length > 1 &&
          `The same applies to ${listed(waiting.flatMap((each) => (each === worst ? [] : each.address)))}.`,
      ],
      why: 'Many programs run lookups on a small thread pool. Node.js (libuv) has four threads, which also handle file access. While these wait for DNS, all other lookups queue inside the program. To the program, a lookup takes seconds although DNS took milliseconds, and no packet shows the wait.',
      fix: [
        'In Node.js, set UV_THREADPOOL_SIZE=64, or use dns.resolve instead of dns.lookup. Keep connections open, so that fewer lookups are needed.',
        'To make each lookup faster, end names with a dot, use a cache on the node, and fix the other findings.',
      ],
      prove: `run ndots capture FILE --ip ${address} -o flow; it never shows more than ${threads} names at a time`,
      disproved:
        'the program has nothing else to look up at the time (for example, its workers look up one name after another)',
      counted: new Map(
        waiting.map((each) => [each.address, clients.get(each.address)?.lookups ?? 0] as const),
      ),
    };
  },
};
