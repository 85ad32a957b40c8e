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
      return excluded('no client begins the next lookup just when another one ends');
    const { address, threads, full, handed, meanMs } = worst;
    return {
      code: this.code,
      title: this.title,
      severity: 'info',
      confidence: 0.7,
      seen: [
        `${address} has ${threads} lookups under way at most. With ${threads - 1} of them under way the next one begins as soon as another has ended: ${percent(handed, full)} of ${full} times. Each takes ${Math.round(meanMs)} ms.`,
        ...(waiting.length > 1
          ? [`So do ${listed(waiting.flatMap((each) => (each === worst ? [] : each.address)))}.`]
          : []),
      ],
      why: 'Many programs hand lookups to a few threads: Node.js (libuv) has four, for files as well. While these wait for DNS, whatever else is to be looked up waits within the program: it sees seconds where DNS took milliseconds, and no packet shows it.',
      fix: [
        'Node.js: UV_THREADPOOL_SIZE=64, or dns.resolve in place of dns.lookup; connections that are kept open ask less.',
        'Make each lookup quick: names with a dot at the end, a cache on the node, and see the other findings.',
      ],
      prove: `ndots capture FILE --ip ${address} -o flow: never more than ${threads} names at a time`,
      disproved:
        'the program has nothing else to look up at the time: a loop, or workers that ask for one name after the other',
      exchanges: [],
      counted: new Map(
        waiting.map((each) => [each.address, clients.get(each.address)?.lookups ?? 0] as const),
      ),
    };
  },
};
