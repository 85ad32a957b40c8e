/** The clock that the kernel uses for packet timestamps. */
import { libc } from './libc.ts';
import { Memory } from './memory.ts';

const CLOCK_REALTIME = 0;

/**
 * Returns a function that reads the time in milliseconds since 1970, to the microsecond. `performance.now` diverges
 * from it after the system clock is set.
 * @throws LibcMissing
 */
export function wallClock(): () => number {
  const memory = new Memory(16);
  const { words, address } = memory;
  const { clockGettime } = libc();
  return () => {
    clockGettime(CLOCK_REALTIME, address);
    return (words[0]! + words[1]! * 0x1_0000_0000) * 1000 + words[2]! / 1e6;
  };
}
