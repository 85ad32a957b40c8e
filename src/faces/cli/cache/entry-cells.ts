/** Formats a cache entry as table cells for the terminal and the console. */
import type { EntryReport } from '../../../server/plugins/cache/cache-messages.ts';

export const entryHeads = ['Name', 'Type', 'For', 'Result', 'Left', 'Hits', 'From'] as const;

/** Returns the cells in the order of `entryHeads`. */
export function entryCells(entry: EntryReport): readonly string[] {
  const { name, type, dnssecOk, checkingDisabled, rcode, half, ttl, storedTtl, hits, from } = entry;
  const client = [...(dnssecOk ? ['do'] : []), ...(checkingDisabled ? ['cd'] : [])].join('+');
  const result = half === 'denial' && rcode === 'NOERROR' ? 'no data' : rcode;
  const left = ttl > 0 ? `${ttl} of ${storedTtl} s` : `stale for ${-ttl} s`;
  const kind = entry.class === 'IN' ? type : `${entry.class} ${type}`;
  return [name, kind, client || 'all', result, left, String(hits), from || '-'];
}
