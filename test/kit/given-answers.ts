/** Builds packets from short lines that describe single queries and the server's answers. */
import type { Finding } from '../../src/tools/doctor/findings/finding.ts';
import { answeredWith, type Reply } from './content-stories.ts';
import { addressRecord, type Captured } from './packets.ts';
import { ends, inOrder } from './story-parts.ts';
import { examine } from './story.ts';

export interface Given {
  readonly atMs: number;
  readonly name: string;
  /** If omitted, there is no answer record. */
  readonly address?: string;
  readonly ttl?: number;
  readonly type?: 'A' | 'AAAA' | 'SRV' | 'AXFR' | 'IXFR';
  readonly client?: string;
  readonly server?: string;
  readonly reply?: Reply;
}

/** The packets, ordered by time. Each query has its own port and ID. */
export function given(all: readonly Given[]): Captured[] {
  return inOrder(
    all.map((each, nth) => {
      const { atMs, name, address, ttl = 30, type = 'A', client = '10.244.1.7' } = each;
      const way = ends(client, 20_000 + nth, each.server);
      const answer = address === undefined ? [] : [addressRecord(name, address, ttl)];
      return answeredWith(atMs, way, name, nth + 1, type, { answer, ...each.reply });
    }),
  );
}

/** The finding with this code that doctor reports for these packets. */
export async function findingOf(
  code: string,
  all: readonly Given[],
  lines: readonly string[] = [],
): Promise<Finding | undefined> {
  const { findings } = await examine(given(all), lines);
  return findings.find((each) => each.code === code);
}

/** Lookups of a healthy name, one per second. */
export const others = (count: number, name = 'fine.example.org.'): Given[] =>
  Array.from({ length: count }, (_, i) => ({ atMs: i * 1000 + 500, name, address: '192.0.2.99' }));
