/** A directory for a server's files, on a disk that fails. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../src/server/base/random.ts';

/** While the disk fails, files can neither be read nor written. They are unchanged when it works again. */
export class FaultyDisk {
  readonly #base = mkdtempSync(join(tmpdir(), 'ndots-simulator-'));
  readonly #directory = join(this.#base, 'disk');
  readonly #hidden = join(this.#base, 'hidden');
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
    mkdirSync(this.#directory);
  }

  /** The file with the last known state of the cluster. */
  get snapshot(): string {
    return join(this.#directory, 'cluster.snapshot');
  }

  /** Makes the disk fail, or damages the snapshot. @returns a description for the trace */
  fail(): string {
    this.heal();
    if (this.#random.integer(2) === 0 && existsSync(this.snapshot)) {
      const bytes = this.#random.integer(statSync(this.snapshot).size);
      truncateSync(this.snapshot, bytes);
      return `the snapshot is cut after ${bytes} bytes`;
    }
    renameSync(this.#directory, this.#hidden);
    writeFileSync(this.#directory, '');
    return 'the disk fails';
  }

  heal(): void {
    if (!existsSync(this.#hidden)) return;
    rmSync(this.#directory);
    renameSync(this.#hidden, this.#directory);
  }

  remove(): void {
    rmSync(this.#base, { recursive: true });
  }
}
