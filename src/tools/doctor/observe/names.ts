/** The names of a capture, by name and type, with a limit. */
import { NameRows, NameView } from './name-view.ts';
import { PairMap } from './pair-map.ts';

/** Views of names, made on first use. */
export class Names {
  /** By type first: a capture has few of them, so that there are few tables. */
  readonly #views: PairMap<number, string, NameView>;
  #rows = new NameRows();
  #answered: Map<string, Map<string, number>> | null = null;
  readonly #make = (type: number, name: string): NameView => new NameView(name, type, this.#rows);

  /** @param most more are counted and not looked at one by one */
  constructor(most: number) {
    this.#views = new PairMap(most);
  }

  /** Null once there are too many. */
  at(name: string, type: number): NameView | null {
    this.#answered = null;
    return this.#views.at(type, name, this.#make);
  }

  get(name: string, type: number): NameView | undefined {
    return this.#views.get(type, name);
  }

  /**
   * The names that a server answers: when the last query of any type was sent that it did,
   * milliseconds since 1970.
   */
  answeredBy(server: string): ReadonlyMap<string, number> {
    this.#answered ??= this.#answeredNow();
    return this.#answered.get(server) ?? noNames;
  }

  get size(): number {
    return this.#views.size;
  }

  get leftOut(): number {
    return this.#views.leftOut;
  }

  clear(): void {
    this.#answered = null;
    this.#views.clear();
    this.#rows = new NameRows();
  }

  get list(): readonly NameView[] {
    return this.#views.list;
  }

  #answeredNow(): Map<string, Map<string, number>> {
    const all = new Map<string, Map<string, number>>();
    for (const { name, answeredMs } of this.list)
      for (const [server, ms] of answeredMs) {
        let names = all.get(server);
        if (names === undefined) all.set(server, (names = new Map()));
        names.set(name, Math.max(ms, names.get(name) ?? -Infinity));
      }
    return all;
  }
}

const noNames: ReadonlyMap<string, number> = new Map();
