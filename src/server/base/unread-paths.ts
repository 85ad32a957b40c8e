import { sep } from 'node:path';

/**
 * Files and directories that a look at a directory could not read. What lies there may be there
 * still, and is not to be taken for gone.
 */
export class UnreadPaths {
  readonly #errors = new Map<string, unknown>();

  /** Each with the error that it gave. */
  get errors(): ReadonlyMap<string, unknown> {
    return this.#errors;
  }

  add(path: string, error: unknown): void {
    this.#errors.set(path, error);
  }

  /** True if the path, or a directory that it lies in, could not be read. */
  hides(path: string): boolean {
    for (const unread of this.#errors.keys())
      if (path === unread || path.startsWith(`${unread}${sep}`)) return true;
    return false;
  }
}
