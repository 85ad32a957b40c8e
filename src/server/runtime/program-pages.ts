/** Returns pages of program files that were needed only at startup to the system. */
import { readFileSync } from 'node:fs';
import { withLibc } from './libc.ts';

/** <sys/mman.h> */
const ADVICE = { NORMAL: 0, RANDOM: 1, DONTNEED: 4 };

/**
 * Unmaps the code and constants of the program and its libraries from this process's memory. Half of the code read at
 * startup is never used again. Pages needed later come back from the page cache, 64 KiB at a time, without disk reads.
 * Mappings with private pages (relocated addresses) are left alone, because they could not be restored from the file.
 *
 * The random-access advice applies only while unmapping. Without it, the kernel marks each page as used again. That
 * moves it to the active list and so into the working set of the container charged for it (docs/decisions/memory.md).
 */
export function unmapUnusedCode(): void {
  withLibc(({ madvise }) => {
    for (const { start, end } of fileMappings())
      for (const advice of [ADVICE.RANDOM, ADVICE.DONTNEED, ADVICE.NORMAL])
        madvise(start, end - start, advice);
  });
}

interface Mapping {
  readonly start: number;
  readonly end: number;
}

/** Lists file mappings that are read-only or executable and unmodified. Format: proc_pid_smaps(5). */
function fileMappings(): Mapping[] {
  let text;
  try {
    text = readFileSync('/proc/self/smaps', 'latin1');
  } catch {
    return [];
  }
  const found: Mapping[] = [];
  for (const part of text.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [, start = '', end = ''] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p .* \/.*$/m.exec(part) ?? [];
    if (start === '' || !/^Private_Dirty: +0 kB$/m.test(part) || !/^Anonymous: +0 kB$/m.test(part))
      continue;
    found.push({ start: parseInt(start, 16), end: parseInt(end, 16) });
  }
  return found;
}
