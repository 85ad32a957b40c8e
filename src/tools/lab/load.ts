/** Sends a steady stream of queries from one machine and records how each one turns out. */
import { UdpClient, type QueryResult } from './udp-client.ts';

export interface LoadPlan {
  /** The file of the machine's network namespace. */
  readonly namespace: string;
  readonly server: string;
  readonly perSecond: number;
  /** The duration, or a promise that ends the stream when it resolves. */
  readonly seconds: number | Promise<unknown>;
  /** Returns the name of the n-th query, including the trailing dot. */
  name(index: number): string;
  /** The time-out of a query in milliseconds. */
  readonly waitMs: number;
  /** The number of sockets to use in turn, each of which has a different source port. */
  readonly sockets: number;
}

export interface LoadResult {
  readonly sent: number;
  readonly answered: number;
  readonly all: readonly QueryResult[];
}

/** Milliseconds between batches of queries. */
const TURN_MS = 5;

/** Sends the stream and waits for the last reply. If the machine is busy, late queries are sent with the next batch. */
export async function load(plan: LoadPlan): Promise<LoadResult> {
  const clients = await Promise.all(
    Array.from({ length: plan.sockets }, () => UdpClient.open(plan.namespace, plan.server)),
  );
  const asked: Promise<QueryResult>[] = [];
  const { seconds } = plan;
  let total = typeof seconds === 'number' ? Math.round(plan.perSecond * seconds) : Infinity;
  const end = (): void => void (total = asked.length);
  if (typeof seconds !== 'number') void seconds.then(end, end);
  const began = performance.now();
  await new Promise<void>((done) => {
    const timer = setInterval(() => {
      const due = Math.min(
        total,
        Math.floor(((performance.now() - began) / 1000) * plan.perSecond),
      );
      while (asked.length < due) {
        const client = clients[asked.length % clients.length]!;
        asked.push(client.ask(plan.name(asked.length), 'A', plan.waitMs));
      }
      if (asked.length < total) return;
      clearInterval(timer);
      done();
    }, TURN_MS);
  });
  const all = await Promise.all(asked);
  for (const client of clients) client.close();
  const answered = all.filter(({ rcode }) => rcode === 0).length;
  return { sent: all.length, answered, all };
}

/** Returns the longest interval without a reply, in milliseconds. */
export function longestOutageMs(all: readonly QueryResult[]): number {
  let longest = 0;
  let since: number | null = null;
  for (const { atMs, rcode } of all) {
    if (rcode === null) since ??= atMs;
    if (since !== null) longest = Math.max(longest, atMs - since);
    if (rcode !== null) since = null;
  }
  return longest;
}
