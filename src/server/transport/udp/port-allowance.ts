/** Limits how many UDP sockets all upstreams of a thread may have open together. */

/**
 * The allowance shared by the upstreams of one network. Each may always have one socket, without
 * which it would be unreachable.
 */
export class PortAllowance {
  readonly #max: number;
  #onShort: (() => void) | null;
  #open = 0;

  /** @param onShort called once, when the limit is reached for the first time */
  constructor(max: number, onShort: () => void) {
    this.#max = max;
    this.#onShort = onShort;
  }

  /** True if one more socket may be opened. */
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
