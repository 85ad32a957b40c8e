/** Connection tracking of the machine that this runs on, where it may be read. */
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { conntrackStatistic } from '../../../server/runtime/conntrack-statistics.ts';

/** Kernel counters since it started, or since the namespace was made. */
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
    const statistics = readFileText(`${proc}/net/stat/nf_conntrack`, FILE_MAX.small);
    return {
      count: number('sys/net/netfilter/nf_conntrack_count'),
      max: number('sys/net/netfilter/nf_conntrack_max'),
      insertFailed: conntrackStatistic(statistics, 'insert_failed'),
      drop: conntrackStatistic(statistics, 'drop'),
    };
  } catch {
    return null;
  }
}
