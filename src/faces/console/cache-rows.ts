/** Merges entries from several caches into one table, with entries for the same question next to each other. */
import type { CacheAnswerDocument } from '../cli/cache/cache-answers.ts';
import { entryCells } from '../cli/cache/entry-cells.ts';

/** Limit of table rows. */
const ROWS_MAX = 500;

export interface CacheRow {
  /** Same order as `entryHeads`. */
  readonly cells: readonly string[];
  readonly server: string;
  readonly worker: number;
  /** True if another server has a different result for the question. */
  differs: boolean;
}

export interface CacheRows {
  readonly rows: readonly CacheRow[];
  readonly leftOut: number;
}

/** Sorts entries by question and compares their results. */
export function cacheRows(answers: readonly CacheAnswerDocument[]): CacheRows {
  const rows: CacheRow[] = [];
  let found = 0;
  for (const { server, caches } of answers)
    for (const { told } of caches)
      for (const { worker, entries, found: matching } of told) {
        found += matching;
        for (const entry of entries)
          rows.push({ cells: entryCells(entry), server, worker, differs: false });
      }
  markDiffering(rows);
  const sorted = rows.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  const shown = sorted.slice(0, ROWS_MAX);
  return { rows: shown, leftOut: found - shown.length };
}

/** An entry of type ANY means that the name does not exist, so it conflicts with entries of any other type. */
function markDiffering(rows: readonly CacheRow[]): void {
  const results = new Map<string, Set<string>>();
  const add = (key: string, result: string): void => {
    const known = results.get(key);
    if (known === undefined) results.set(key, new Set([result]));
    else known.add(result);
  };
  for (const row of rows) {
    const { result } = questionOf(row);
    add(keyOf(row), result);
    add(existenceKey(row), String(isMissing(row)));
  }
  for (const row of rows)
    row.differs = [keyOf(row), existenceKey(row)].some((key) => results.get(key)!.size > 1);
}

function questionOf({ cells }: CacheRow): Record<'name' | 'type' | 'client' | 'result', string> {
  const [name = '', type = '', client = '', result = ''] = cells;
  return { name, type, client, result };
}

function keyOf(row: CacheRow): string {
  const { name, type, client } = questionOf(row);
  return `${name} ${type} ${client}`;
}

function existenceKey(row: CacheRow): string {
  const { name, client } = questionOf(row);
  return `exists ${name} ${client}`;
}

function isMissing(row: CacheRow): boolean {
  return questionOf(row).type.endsWith('ANY');
}
