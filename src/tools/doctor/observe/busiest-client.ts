/** The client that sends the most queries. */

export interface BusiestClient {
  readonly address: string;
  readonly queries: number;
  /** The queries of all clients, and its share of them, 0 to 1. */
  readonly all: number;
  readonly share: number;
}

/** Returns null if there are no clients. */
export function busiestOf(
  clients: Iterable<readonly [address: string, queries: number]>,
): BusiestClient | null {
  let [most, all]: [readonly [string, number] | null, number] = [null, 0];
  for (const each of clients) {
    all += each[1];
    if (most === null || each[1] > most[1]) most = each;
  }
  if (most === null) return null;
  const [address, queries] = most;
  return { address, queries, all, share: all === 0 ? 0 : queries / all };
}
