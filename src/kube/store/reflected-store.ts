/** Where what is watched is kept: what is in it, and what that changed. */
export interface ReflectedStore<T, C> {
  readonly size: number;
  /** About what it takes. */
  readonly bytes: number;
  /** Keeps what one API object came to, and appends what that changed to `out`. */
  put(namespace: string, name: string, objects: readonly T[], out: C[]): void;
  remove(namespace: string, name: string, out: C[]): void;
  /** A complete list begins: whatever is not put again before `endList` will be gone. */
  beginList(): void;
  endList(out: C[]): void;
}
