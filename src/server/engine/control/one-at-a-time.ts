/** Runs jobs that must not overlap: startup, reloads, and anything that must not run during a reload. */
export class OneAtATime {
  #running: Promise<unknown> | null = null;
  /** A job that was requested during the current one, and will run after it. */
  #next: Promise<unknown> | null = null;

  /** The job in progress, or null. */
  get running(): Promise<unknown> | null {
    return this.#running;
  }

  /** Runs a job at once. No other job may be in progress. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const running = work().finally(() => {
      this.#running = null;
    });
    this.#running = running;
    return running;
  }

  /** Runs a job when no other is running. */
  async after(work: () => Promise<void>): Promise<void> {
    while (this.#running !== null) await this.#running.catch(() => undefined);
    await this.run(work);
  }

  /**
   * Runs a job at once, or when the current one ends. A single run satisfies all requests made during the current job,
   * so they must all be for the same job.
   */
  once<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running === null) return this.run(work);
    const again = (): Promise<T> => {
      this.#next = null;
      return this.once(work);
    };
    this.#next ??= this.#running.then(again, again);
    return this.#next as Promise<T>;
  }
}
