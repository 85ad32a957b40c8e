/** Work that must not overlap: the start, reloads, and whatever wants none of them under way. */
export class OneAtATime {
  #running: Promise<unknown> | null = null;
  /** What follows the work under way, when asked for meanwhile. */
  #next: Promise<unknown> | null = null;

  /** The work under way; null: none. */
  get running(): Promise<unknown> | null {
    return this.#running;
  }

  /** Begins at once; nothing else is under way. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const running = work().finally(() => {
      this.#running = null;
    });
    this.#running = running;
    return running;
  }

  /** Begins once nothing else is under way. */
  async after(work: () => Promise<void>): Promise<void> {
    while (this.#running !== null) await this.#running.catch(() => undefined);
    await this.run(work);
  }

  /** Begins at once, or when what is under way is over: once for all who ask for it meanwhile. Always the same work. */
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
