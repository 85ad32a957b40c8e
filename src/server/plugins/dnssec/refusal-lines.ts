/** Log lines about queries that were refused because too many signatures are in progress. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

const MINUTE_MS = 60_000;

/** Logs the first refusal at once, followed by a count once a minute, so that a flood of names cannot fill the log. */
export class RefusalLines {
  readonly #clock: Clock;
  readonly #log: Pick<Log, 'warning'>;
  readonly #most: number;
  #timer: Timer | null = null;
  #refused = 0;

  /** @param most maximum number of RRsets in progress */
  constructor(clock: Clock, log: Pick<Log, 'warning'>, most: number) {
    this.#clock = clock;
    this.#log = log;
    this.#most = most;
  }

  count(): void {
    this.#refused++;
    if (this.#timer === null) this.#tell();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #tell(): void {
    const queries = this.#refused === 1 ? '1 query was' : `${this.#refused} queries were`;
    this.#log.warning(
      `too many RRsets are being signed (max_signing ${this.#most}): ${queries} refused`,
    );
    this.#refused = 0;
    this.#timer = this.#clock.after(MINUTE_MS, () => {
      this.#timer = null;
      if (this.#refused > 0) this.#tell();
    });
  }
}
