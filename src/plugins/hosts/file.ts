/** A hosts file, and when it has changed. */
import { statSync, type Stats } from 'node:fs';
import type { Log } from '../../base/log.ts';
import { Problem } from '../../base/problem.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';

/** A hosts file that is read again when its time or size has changed. A file that is not there is an empty one. */
export class HostsFile {
  readonly path: string;
  readonly #log: Log;
  text = '';
  /** Seconds since 1970 of the file's last change; null: never read. */
  changedAt: number | null = null;
  #mtimeMs = -1;
  #size = -1;

  constructor(path: string, log: Log) {
    this.path = path;
    this.#log = log;
  }

  /** Tells a person early what will not work. @throws Problem if the file is there but cannot be looked at */
  check(): void {
    try {
      if (statSync(this.path).isDirectory())
        this.#log.warning(`Hosts file "${this.path}" is a directory`);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') {
        this.#log.warning(`File does not exist: ${this.path}`);
        return;
      }
      throw new Problem({
        code: 'hosts-unreadable',
        text: `unable to access hosts file '${this.path}': ${message}`,
        remedy: `Check the path and who may read it: ls -l ${this.path}`,
        cause: error,
      });
    }
  }

  /**
   * Whether there was something new. A file that cannot be read leaves what was read before, and is tried again at the next
   * look; one that is too large, or no file, not before it has changed.
   */
  refresh(): boolean {
    let stats: Stats | null = null;
    try {
      stats = statSync(this.path);
      if (stats.mtimeMs === this.#mtimeMs && stats.size === this.#size) return false;
      this.text = readFileText(this.path, FILE_MAX.hosts);
      this.#seen(stats);
      this.changedAt = stats.mtimeMs / 1000;
      return true;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (stats !== null && (code === 'EFBIG' || code === 'ENOTREG')) {
        this.#seen(stats);
        this.#log.error(`${this.path} is not read: it ${message}`);
      }
      return false;
    }
  }

  #seen({ mtimeMs, size }: Stats): void {
    this.#mtimeMs = mtimeMs;
    this.#size = size;
  }
}
