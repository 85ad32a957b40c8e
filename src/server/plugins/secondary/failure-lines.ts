/** Log lines about failed transfers, across all zones. */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';

const LINES = 200;
const MINUTE_MS = 60_000;

export type FailureLog = Pick<Log, 'info' | 'warning' | 'error'>;

/**
 * Logs two hundred lines per minute and counts the rest. A catalog can list ten thousand zones. If their primary is
 * down, each of them fails every ten seconds.
 */
export class FailureLines implements FailureLog {
  readonly #clock: Clock;
  readonly #log: FailureLog;
  #timer: Timer | null = null;
  #lines = 0;

  constructor(clock: Clock, log: FailureLog) {
    this.#clock = clock;
    this.#log = log;
  }

  info(text: string): void {
    if (this.#admits()) this.#log.info(text);
  }

  warning(text: string): void {
    if (this.#admits()) this.#log.warning(text);
  }

  error(text: string): void {
    if (this.#admits()) this.#log.error(text);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #admits(): boolean {
    this.#timer ??= this.#clock.after(MINUTE_MS, () => {
      this.#timer = null;
      if (this.#lines > LINES)
        this.#log.warning(
          `${this.#lines - LINES} more lines about failed transfers; ndots_zone_reload_failures_total counts them by zone`,
        );
      this.#lines = 0;
    });
    return ++this.#lines <= LINES;
  }
}
