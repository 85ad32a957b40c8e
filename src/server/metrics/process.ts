import { readdirSync, readFileSync } from 'node:fs';
import { counter, gauge, type MetricSample } from './sample.ts';

/** The files that describe this process. Both methods throw if the path does not exist. */
export interface ProcFiles {
  readText(path: string): string;
  countEntries(path: string): number;
}

const procFiles: ProcFiles = {
  readText: (path) => readFileSync(path, 'latin1'),
  countEntries: (path) => readdirSync(path).length,
};

/**
 * Returns the `process_*` values that every Prometheus client exposes, read from Linux's /proc (proc(5)) at each call.
 * They cover all of the process's threads. Unreadable values are omitted, which on other systems means all of them.
 */
export function processSamples(files: ProcFiles = procFiles): readonly MetricSample[] {
  return [
    ...ofStat(files),
    ...ofStatus(files),
    ...ofLimits(files),
    ...ofDescriptors(files),
    ...ofNetwork(files),
  ];
}

function ofStat(files: ProcFiles): readonly MetricSample[] {
  const stat = attempt(() => files.readText('/proc/self/stat'));
  if (stat === null) return [];
  // The second field is the program's name in parentheses, and may contain anything. The third begins after the last
  // parenthesis.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  const samples = [
    counter(
      'process_cpu_seconds_total',
      'CPU time that the process has used in user and kernel mode, in seconds.',
      (field(14) + field(15)) / TICKS_PER_SECOND,
    ),
    gauge(
      'process_virtual_memory_bytes',
      'Size of the address space in bytes; most of it is reserved, not used.',
      field(23),
    ),
  ];
  const boot = attempt(() => files.readText('/proc/stat').match(/^btime (\d+)$/m));
  if (boot !== null) {
    samples.push(
      gauge(
        'process_start_time_seconds',
        'When the process was started, in seconds since 1970-01-01 UTC.',
        Number(boot[1]) + field(22) / TICKS_PER_SECOND,
      ),
    );
  }
  return samples;
}

/** The unit of times in /proc. It is the same on all architectures that Node supports, whatever the kernel's tick. */
const TICKS_PER_SECOND = 100;

function ofStatus(files: ProcFiles): readonly MetricSample[] {
  // Given in kilobytes. stat counts in pages, whose size differs between machines.
  const resident = attempt(() => files.readText('/proc/self/status').match(/^VmRSS:\s+(\d+) kB$/m));
  if (resident === null) return [];
  return [
    gauge(
      'process_resident_memory_bytes',
      'Resident memory of the process, in bytes; container limits apply to this value.',
      Number(resident[1]) * 1024,
    ),
  ];
}

function ofLimits(files: ProcFiles): readonly MetricSample[] {
  const limits = attempt(() => files.readText('/proc/self/limits'));
  if (limits === null) return [];
  const samples: MetricSample[] = [];
  const add = (title: string, name: string, help: string): void => {
    const line = limits.split('\n').find((text) => text.startsWith(`${title} `));
    const soft = /^\s+(\d+|unlimited)\s/.exec(line?.slice(title.length) ?? '')?.[1];
    if (soft === undefined) return;
    samples.push(gauge(name, help, soft === 'unlimited' ? 2 ** 64 : Number(soft)));
  };
  add(
    'Max open files',
    'process_max_fds',
    'Maximum number of open file descriptors, including sockets.',
  );
  add(
    'Max address space',
    'process_virtual_memory_max_bytes',
    'Limit of the address space in bytes; 2^64 means no limit.',
  );
  return samples;
}

function ofDescriptors(files: ProcFiles): readonly MetricSample[] {
  const open = attempt(() => files.countEntries('/proc/self/fd'));
  if (open === null) return [];
  const help = 'Open file descriptors, including sockets.';
  return [gauge('process_open_fds', help, open)];
}

/** Returns the traffic on all interfaces in the network namespace. Each pod has its own namespace. */
function ofNetwork(files: ProcFiles): readonly MetricSample[] {
  const text = attempt(() => files.readText('/proc/self/net/netstat'));
  const [names, values] = (text ?? '')
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '));
  if (names === undefined || values === undefined) return [];
  const octets = (name: string): number => Number(values[names.indexOf(name)]);
  return [
    counter(
      'process_network_receive_bytes_total',
      'Bytes of IP packets received in the process’s network namespace.',
      octets('InOctets'),
    ),
    counter(
      'process_network_transmit_bytes_total',
      'Bytes of IP packets sent in the process’s network namespace.',
      octets('OutOctets'),
    ),
  ];
}

/** Returns the number of threads in the process, including the runtime's, or 0 if unknown. */
export function threadCount(files: ProcFiles = procFiles): number {
  const status = attempt(() => files.readText('/proc/self/status'));
  return Number(/^Threads:\s+(\d+)$/m.exec(status ?? '')?.[1] ?? 0);
}

function attempt<T>(read: () => T): T | null {
  try {
    return read();
  } catch {
    return null;
  }
}
