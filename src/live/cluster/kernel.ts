/** Connection tracking of the machine that this runs on, where it may be read. */
import { FILE_MAX, readFileText } from '../../base/read-file.ts';

/** What the kernel counts since it was started, or since the namespace was made. */
export interface KernelCounters {
  readonly count: number;
  readonly max: number;
  readonly insertFailed: number;
  readonly drop: number;
}

/** Null: there is no connection tracking here, or it may not be read. */
export function kernelCounters(proc = '/proc'): KernelCounters | null {
  try {
    const number = (path: string): number =>
      Number(readFileText(`${proc}/${path}`, FILE_MAX.small));
    const [head = [], ...rows] = readFileText(`${proc}/net/stat/nf_conntrack`, FILE_MAX.small)
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/ +/));
    // A row for each processor, in hexadecimal.
    const sum = (column: string): number => {
      const at = head.indexOf(column);
      return at < 0
        ? 0
        : rows.reduce((total, row) => total + Number.parseInt(row[at] ?? '0', 16), 0);
    };
    return {
      count: number('sys/net/netfilter/nf_conntrack_count'),
      max: number('sys/net/netfilter/nf_conntrack_max'),
      insertFailed: sum('insert_failed'),
      drop: sum('drop'),
    };
  } catch {
    return null;
  }
}
