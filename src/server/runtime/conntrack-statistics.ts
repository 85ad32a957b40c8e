/** The kernel's counters of connection tracking: the text of `/proc/net/stat/nf_conntrack`. */

/**
 * The sum of a column (`insert_failed`, `drop` …) over all CPUs; 0: this kernel does not have it.
 */
export function conntrackStatistic(text: string, column: string): number {
  const [head = [], ...rows] = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/ +/));
  const at = head.indexOf(column);
  if (at < 0) return 0;
  // A row for each CPU, in hexadecimal.
  return rows.reduce((sum, row) => sum + Number.parseInt(row[at] ?? '0', 16), 0);
}
