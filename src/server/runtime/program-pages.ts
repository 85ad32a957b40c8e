/** Returns pages of program files that only the start needed to the system. */
import { readFileSync } from 'node:fs';
import { libc, LibcMissing } from './libc.ts';

/** <sys/mman.h> */
const ADVICE = { NORMAL: 0, RANDOM: 1, DONTNEED: 4 };

/**
 * Drops the code and the constants of the program and its libraries from this process's memory:
 * half of the code that a runtime reads at its start is never used again. Pages that are needed
 * later come back from the system's file cache, 64 KiB at a time, without reading the disk. Mappings with
 * private pages (relocated addresses) are left alone, because they could not be read from the file
 * again.
 *
 * The advice to expect random access is only for the unmapping: without it the kernel counts each
 * page as used again. It moves the pages to the active list, and so into the working set, of the
 * container that was charged with them (docs/decisions/memory.md).
 */
export function unmapUnusedCode(): void {
  try {
    const { madvise } = libc();
    for (const { start, end } of fileMappings())
      for (const advice of [ADVICE.RANDOM, ADVICE.DONTNEED, ADVICE.NORMAL])
        madvise(start, end - start, advice);
  } catch (error) {
    if (!(error instanceof LibcMissing)) throw error;
  }
}

interface Mapping {
  readonly start: number;
  readonly end: number;
}

/**
 * File mappings that can only be read or run, and equal the file on disk. Format:
 * proc_pid_smaps(5).
 */
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
