/**
 * The source ports of a node for the traffic of its pods to one external address. When all are taken, new
 * connections are lost.
 */

/** Ports of one translated address towards one destination. */
export class SnatPorts {
  readonly #count: number;
  readonly #holdMs: number;
  /** The times at which taken ports are free again, in the order of allocation. */
  readonly #taken: number[] = [];
  /** Connections without a port. */
  lost = 0;

  /**
   * @param count ports of the range: 64 512 for `--random-fully`, or a cloud's allocation per machine
   * @param holdSeconds a connection holds its port this long after its last packet
   */
  constructor(count: number, holdSeconds: number) {
    this.#count = count;
    this.#holdMs = holdSeconds * 1000;
  }

  taken(nowMs: number): number {
    while (this.#taken.length > 0 && this.#taken[0]! <= nowMs) this.#taken.shift();
    return this.#taken.length;
  }

  /** False: no port is free. */
  open(nowMs: number): boolean {
    if (this.taken(nowMs) >= this.#count) {
      this.lost++;
      return false;
    }
    this.#taken.push(nowMs + this.#holdMs);
    return true;
  }
}
