/**
 * Source ports that a node has for the traffic of its pods to one address outside: when all are
 * taken, new connections are lost.
 */

/** Ports of one translated address towards one destination. */
export class SnatPorts {
  readonly #count: number;
  readonly #holdMs: number;
  /** When each port that is taken is free again, in the order in which they were taken. */
  readonly #taken: number[] = [];
  /** Connections that found no port. */
  lost = 0;

  /**
   * @param count ports of the range: 64 512 for `--random-fully`, or what a cloud gives each
   * machine
   * @param holdSeconds how long a connection keeps its port after its last packet
   */
  constructor(count: number, holdSeconds: number) {
    this.#count = count;
    this.#holdMs = holdSeconds * 1000;
  }

  /** Ports that are taken at this time. */
  taken(nowMs: number): number {
    while (this.#taken.length > 0 && this.#taken[0]! <= nowMs) this.#taken.shift();
    return this.#taken.length;
  }

  /** A new connection; false: there is no port for it. */
  open(nowMs: number): boolean {
    if (this.taken(nowMs) >= this.#count) {
      this.lost++;
      return false;
    }
    this.#taken.push(nowMs + this.#holdMs);
    return true;
  }
}
