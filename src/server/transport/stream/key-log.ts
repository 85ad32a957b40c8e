/** Writes TLS connection secrets to a file in NSS key log format, so that Wireshark can decrypt captures. */
import { appendFileSync, constants } from 'node:fs';
import type { Log } from '../../base/log.ts';
import { whyFailed } from '../../base/why-failed.ts';

/** Create the file if necessary. Opening a named pipe that has no reader does not block. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;

/**
 * Appends secrets to a file, which is created immediately and can be read only by its owner. The file is opened for
 * each line, so it can be moved away at any time. Several threads may write to the same file, because each line is a
 * single write.
 */
export class KeyLog {
  readonly #path: string;
  readonly #log: Log;
  #failing = false;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
    this.append(Buffer.alloc(0));
  }

  /** If a line cannot be written, it is dropped and the first such error is logged. The connection continues. */
  append(line: Buffer): void {
    try {
      // oxlint-disable-next-line no-bitwise
      appendFileSync(this.#path, line, { mode: 0o600, flag: FLAGS as unknown as string });
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        this.#log.error(
          `unable to write TLS Key Log to ${JSON.stringify(this.#path)}: ${whyFailed(error)}`,
        );
      this.#failing = true;
    }
  }
}
