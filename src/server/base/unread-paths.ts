import { sep } from 'node:path';

/**
 * Files and directories that could not be read. Their content may still exist, and must not count
 * as gone.
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

  /** True if the path, or a directory above it, could not be read. */
  hides(path: string): boolean {
    for (const unread of this.#errors.keys())
      if (path === unread || path.startsWith(`${unread}${sep}`)) return true;
    return false;
  }
}
