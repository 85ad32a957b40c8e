import { sep } from 'node:path';

/** Files and directories that could not be read. Their contents may still exist and must not be treated as deleted. */
export class UnreadPaths {
  readonly #errors = new Map<string, unknown>();

  /** The error for each path. */
  get errors(): ReadonlyMap<string, unknown> {
    return this.#errors;
  }

  add(path: string, error: unknown): void {
    this.#errors.set(path, error);
  }

  /** Returns true if the path, or a directory above it, was unreadable. */
  hides(path: string): boolean {
    for (const unread of this.#errors.keys())
      if (path === unread || path.startsWith(`${unread}${sep}`)) return true;
    return false;
  }
}
