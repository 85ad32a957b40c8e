import { writeSync } from 'node:fs';

/** Lines waiting beyond this many bytes are dropped: a stuck reader of the log must not stop answers. */
const WAITING_MAX = 4 * 1024 * 1024;
const FLUSH_MS = 50;

export interface Lines {
  write(line: string): void;
  /** Writes out what waits, as far as the reader takes it. */
  flush(): void;
  /** Lines lost so far because the reader was too slow. */
  readonly dropped: number;
}

/**
 * Lines to a file descriptor, gathered and written in one call each 50 ms or 16 KiB. Usable from any thread: worker
 * threads write to the descriptor themselves instead of through the main thread.
 */
export function stdoutLines(fd = 1): Lines {
  let waiting = '';
  let dropped = 0;
  let timer: NodeJS.Timeout | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    while (waiting !== '') {
      let bytes: Buffer | null = Buffer.from(waiting, 'utf8');
      waiting = '';
      try {
        const written = writeSync(fd, bytes);
        if (written < bytes.length) waiting = bytes.subarray(written).toString('utf8') + waiting;
        bytes = null;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        if (code !== 'EAGAIN') return; // nobody reads any more (EPIPE): nothing left to do
        waiting = bytes!.toString('utf8') + waiting;
        later();
        return;
      }
    }
  };
  const later = (): void => {
    if (timer !== null) return;
    timer = setTimeout(flush, FLUSH_MS);
    timer.unref();
  };
  process.on('exit', flush);
  return {
    write(line) {
      if (waiting.length + line.length > WAITING_MAX) {
        dropped++;
        return;
      }
      waiting += `${line}\n`;
      if (waiting.length > 16_384) flush();
      else later();
    },
    flush,
    get dropped() {
      return dropped;
    },
  };
}
