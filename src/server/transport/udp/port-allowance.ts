/** Limits the number of open UDP sockets for all upstreams of a thread together. */

/**
 * The allowance shared by the upstreams of a network. Each may always have one socket, without which it would be
 * unreachable.
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

  /** True if another socket may be opened. */
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
