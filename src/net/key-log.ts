/** The secrets of TLS connections in a file, in the format of NSS, which programs that read captures of them know. */
import { appendFileSync, constants } from 'node:fs';
import type { Log } from '../base/log.ts';
import { whyFailed } from '../base/why-failed.ts';

/** Made if it is not there; a named pipe that nobody reads holds nobody up. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NONBLOCK;

/**
 * Appends lines of secrets to a file, which is there from the beginning on and only its owner may read. It is opened for each line, so
 * that it can be moved away at any time. Threads may write to the same one: a line is one write.
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

  /** A line that cannot be written is lost, and the first of them told of: the connection goes on. */
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
