/**
 * Models the source ports that a node uses for its pods' traffic to one external address. Once all are in use, new
 * connections are lost.
 */

/** The ports of a translated address for one destination. */
export class SnatPorts {
  readonly #count: number;
  readonly #holdMs: number;
  /** The times when ports in use become free, in order of allocation. */
  readonly #taken: number[] = [];
  /** Connections that got no port. */
  lost = 0;

  /**
   * @param count ports in the range, which is 64 512 for `--random-fully`, or a cloud's allocation per machine
   * @param holdSeconds how long a connection holds on to its port after its last packet
   */
  constructor(count: number, holdSeconds: number) {
    this.#count = count;
    this.#holdMs = holdSeconds * 1000;
  }

  taken(nowMs: number): number {
    while (this.#taken.length > 0 && this.#taken[0]! <= nowMs) this.#taken.shift();
    return this.#taken.length;
  }

  /** Returns false if no port is free. */
  open(nowMs: number): boolean {
    if (this.taken(nowMs) >= this.#count) {
      this.lost++;
      return false;
    }
    this.#taken.push(nowMs + this.#holdMs);
    return true;
  }
}
