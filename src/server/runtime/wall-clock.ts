/** The clocks of the kernel that Node does not read: those of packets and of process start times. */
import { libc } from './libc.ts';
import { Memory } from './memory.ts';

const CLOCK_REALTIME = 0;
const CLOCK_BOOTTIME = 7;

/**
 * Returns a function that reads the time in milliseconds since 1970, to the microsecond. The kernel timestamps packets
 * with this clock. `performance.now` diverges from it after the system clock is set.
 * @throws LibcMissing
 */
export function wallClock(): () => number {
  return clockOf(CLOCK_REALTIME);
}

/**
 * Returns a function that reads the time in milliseconds since the machine booted, including the time it was suspended.
 * Process start times in /proc and `bpf_ktime_get_boot_ns` use this clock.
 * @throws LibcMissing
 */
export function bootClock(): () => number {
  return clockOf(CLOCK_BOOTTIME);
}

function clockOf(clock: number): () => number {
  const memory = new Memory(16);
  const { words, address } = memory;
  const { clockGettime } = libc();
  return () => {
    clockGettime(clock, address);
    return (words[0]! + words[1]! * 0x1_0000_0000) * 1000 + words[2]! / 1e6;
  };
}
