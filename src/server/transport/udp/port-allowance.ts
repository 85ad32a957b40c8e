/** Limits the total number of open UDP sockets for all of a thread's upstreams. */

/**
 * The allowance shared by a network's upstreams. Each one may always have one socket, because it would be unreachable
 * without it.
 */
export class PortAllowance {
  readonly #max: number;
  #onShort: (() => void) | null;
  #open = 0;

  /** @param onShort called once, when the limit is first reached */
  constructor(max: number, onShort: () => void) {
    this.#max = max;
    this.#onShort = onShort;
  }

  get permits(): boolean {
    if (this.#open < this.#max) return true;
    const tell = this.#onShort;
    this.#onShort = null;
    tell?.();
    return false;
  }

  taken(): void {
    this.#open++;
  }

  givenBack(): void {
    this.#open--;
  }
}
