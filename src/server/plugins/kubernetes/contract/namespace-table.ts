/** A cluster's namespaces, by name and by number. */
import { NameTable, type Named } from './name-table.ts';

/** Assigns numbers to namespaces. A number remains valid while it is in use. */
export interface NamespaceNumbers {
  /** Returns a namespace's number, which is never 0. It remains valid until it is released. */
  readonly of: (namespace: string) => number;
  readonly hold: (id: number) => void;
  readonly release: (id: number) => void;
}

/** A namespace, or a placeholder that gives services in an unknown namespace a number. */
export interface NamespaceRecord extends Named {
  readonly id: number;
  there: boolean;
  /** Number of its services and pod addresses. While there are any, a deleted namespace keeps its number. */
  members: number;
}

export class NamespaceTable {
  readonly #byName = new NameTable<NamespaceRecord>();
  readonly #byId: (NamespaceRecord | null)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#byName.size;
  }

  readonly numbers: NamespaceNumbers = {
    of: (namespace) => this.make(namespace).id,
    hold: (id) => void this.#byId[id]!.members++,
    release: (id) => {
      const namespace = this.#byId[id]!;
      namespace.members--;
      this.#forgetIfEmpty(namespace);
    },
  };

  find(bytes: Uint8Array, at: number): NamespaceRecord | null {
    const found = this.#byName.find(bytes, at + 1, bytes[at]!, 0);
    return found !== null && found.there ? found : null;
  }

  /** Returns the namespace with this name, whether or not it exists. */
  get(name: string): NamespaceRecord | null {
    return this.#byName.get(name, 0);
  }

  /** Returns the name for a number, or `''`. */
  nameOf(id: number): string {
    return this.#byId[id]?.name ?? '';
  }

  make(name: string): NamespaceRecord {
    const known = this.get(name);
    if (known !== null) return known;
    // Number 0 is the parent of the namespaces themselves.
    const id = this.#free.pop() ?? Math.max(1, this.#byId.length);
    const record: NamespaceRecord = { name, parent: 0, id, there: false, members: 0 };
    this.#byId[id] = record;
    this.#byName.add(record);
    return record;
  }

  /**
   * Records that a namespace was created or deleted.
   * @returns true if this changes anything
   */
  set(name: string, there: boolean): boolean {
    if (!there && this.get(name) === null) return false;
    const record = this.make(name);
    if (record.there === there) return false;
    record.there = there;
    this.#forgetIfEmpty(record);
    return true;
  }

  #forgetIfEmpty(namespace: NamespaceRecord): void {
    if (namespace.there || namespace.members > 0) return;
    this.#byName.remove(namespace);
    this.#byId[namespace.id] = null;
    this.#free.push(namespace.id);
  }
}
