/** Parses the kernel's connection tracking counters in `/proc/net/stat/nf_conntrack`. */

/** Sums a column (`insert_failed`, `drop` …) over all CPUs. Returns 0 if this kernel lacks the column. */
export function conntrackStatistic(text: string, column: string): number {
  const [head = [], ...rows] = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/));
  const at = head.indexOf(column);
  if (at < 0) return 0;
  // One row per CPU, in hexadecimal.
  return rows.reduce((sum, row) => sum + Number.parseInt(row[at] ?? '0', 16), 0);
}
