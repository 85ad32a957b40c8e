/** Numbers about servers, for very many things: rows in lists, one list for each thing. */
import { NumberRows } from './number-rows.ts';

/** Numbers that stand for the addresses of servers. */
export class AddressNumbers {
  readonly #addresses: string[] = [];
  readonly #numbers = new Map<string, number>();

  /** The address’s number, assigned on first use. */
  of(address: string): number {
    let number = this.#numbers.get(address);
    if (number === undefined) {
      number = this.#addresses.push(address) - 1;
      this.#numbers.set(address, number);
    }
    return number;
  }

  /** -1 if the address has none. */
  knownOf(address: string): number {
    return this.#numbers.get(address) ?? -1;
  }

  addressOf(number: number): string {
    return this.#addresses[number]!;
  }
}

/** Positions in a row: the row before it in its list, the server, and the first of the other counts. */
const BEFORE = 0;
const SERVER = 1;
export const LISTED = 2;

/** Lists of rows. A list is known by its last row; 0 is an empty one. */
export class ServerRows extends NumberRows {
  readonly #numbers: AddressNumbers;

  constructor(numbers: AddressNumbers, countsOfRow: number, timesOfRow: number) {
    super(LISTED + countsOfRow, timesOfRow);
    this.#numbers = numbers;
    this.add();
  }

  /** Adds a row to a list. @returns the list */
  append(list: number, server: string): number {
    const row = this.add();
    this.setCount(row, BEFORE, list);
    this.setCount(row, SERVER, this.#numbers.of(server));
    return row;
  }

  before(row: number): number {
    return this.count(row, BEFORE);
  }

  serverOf(row: number): string {
    return this.#numbers.addressOf(this.count(row, SERVER));
  }

  /** The last row about a server in a list; 0 if there is none. */
  find(list: number, server: string): number {
    // A server without a number is not in any list. It gets a number only with its first entry,
    // because a capture may contain any number of addresses.
    const number = this.#numbers.knownOf(server);
    let row = number < 0 ? 0 : list;
    while (row > 0 && this.count(row, SERVER) !== number) row = this.before(row);
    return row;
  }

  lengthOf(list: number): number {
    let length = 0;
    for (let row = list; row > 0; row = this.before(row)) length++;
    return length;
  }

  /** The rows of a list, in their order. */
  in(list: number): readonly number[] {
    const rows: number[] = [];
    for (let row = list; row > 0; row = this.before(row)) rows.push(row);
    return rows.toReversed();
  }
}
