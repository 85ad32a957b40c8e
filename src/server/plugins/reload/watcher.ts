/** Detects changes to the Corefile. */
import { Problem } from '../../base/problem.ts';
import { every, type Clock, type Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type {
  KeptAcrossReloads,
  RunningConfiguration,
} from '../../engine/contract/control-context.ts';

/** One instance of `reload`. */
export interface ReloadWatch {
  readonly intervalMs: number;
  readonly configuration: RunningConfiguration;
  readonly log: Log;
}

/**
 * Checks the Corefile periodically and loads it if it has changed. There is one watcher for the whole server. Because
 * it survives reloads, it remembers a rejected file.
 */
export class Watcher implements KeptAcrossReloads {
  readonly #clock: Clock;
  readonly #watches: ReloadWatch[] = [];
  #timer: Timer | null = null;
  /** The content that was last loaded or rejected. */
  #seen = '';
  #told = '';
  #complaint = '';
  #busy = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(watch: ReloadWatch): void {
    this.#watches.push(watch);
    this.#seen = watch.configuration.fingerprint;
    this.#restart();
  }

  /** Logs the running configuration only once, even if the plugin is in several blocks. */
  tell({ configuration: { fingerprint }, log }: ReloadWatch): void {
    if (fingerprint === this.#told) return;
    this.#told = fingerprint;
    log.info(`Running configuration SHA512 = ${fingerprint}`);
  }

  end(watch: ReloadWatch): void {
    const index = this.#watches.indexOf(watch);
    if (index < 0) return;
    this.#watches.splice(index, 1);
    this.#restart();
  }

  close(): void {
    this.#watches.length = 0;
    this.#restart();
  }

  #restart(): void {
    this.#timer?.cancel();
    const watch = this.#watches.at(-1);
    this.#timer =
      watch === undefined ? null : every(this.#clock, watch.intervalMs, () => this.#look(watch));
  }

  #look(watch: ReloadWatch): void {
    if (this.#busy) return;
    const { log, configuration } = watch;
    const found = configuration.reread();
    if ('problem' in found) {
      const { problem } = found;
      if (problem.message === this.#complaint) return;
      this.#complaint = problem.message;
      // The file can be read but not loaded. The attempt to load it reports and counts this like any other error in a
      // directive.
      if (problem instanceof Problem && problem.code === 'directive-unknown') this.#take(watch);
      else {
        const text = problem instanceof Problem ? problem.print() : problem.message;
        log.warning(`Corefile parse failed: ${text}`);
      }
      return;
    }
    this.#complaint = '';
    if (found.fingerprint === this.#seen) return;
    // An invalid file is not tried again until it changes.
    this.#seen = found.fingerprint;
    this.#take(watch);
  }

  #take(watch: ReloadWatch): void {
    const { log, configuration } = watch;
    this.#busy = true;
    void configuration
      .reload()
      .then((taken) => {
        const ending = !this.#watches.includes(watch);
        if (!taken && !ending) {
          log.error('Corefile changed but reload failed: the previous configuration stays in use');
        }
      })
      .finally(() => {
        this.#busy = false;
      });
  }
}
