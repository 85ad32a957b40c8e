/** A store that a reflector keeps up to date. Its methods report the resulting changes. */
export interface ReflectedStore<T, C> {
  readonly size: number;
  /** Approximate memory in bytes. */
  readonly bytes: number;
  /** Stores the result of transforming one API object, and appends the changes to `out`. */
  put(namespace: string, name: string, objects: readonly T[], out: C[]): void;
  remove(namespace: string, name: string, out: C[]): void;
  /** Starts a complete list. `endList` removes objects that have not been put again by then. */
  beginList(): void;
  endList(out: C[]): void;
}
