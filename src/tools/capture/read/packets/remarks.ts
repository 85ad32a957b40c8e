/**
 * Counts the reasons why something was unreadable or skipped, and prints one line for each, however often it happened.
 */

export interface Remark {
  readonly text: string;
  readonly count: number;
  /** The first location: `frame 17`, `byte 4096`; empty: unknown. */
  readonly first: string;
}

/** Limit on distinct reasons. There may be many if they include a number from the input, such as a link type. */
const REASONS_MAX = 100;
const OTHERS = 'other reasons, counted together';

/** Counts reasons. Beyond a hundred, all others are counted together. */
export class Remarks {
  readonly #found = new Map<string, { count: number; first: string }>();

  add(text: string, first = '', count = 1): void {
    const known = this.#found.get(text);
    if (known === undefined && this.#found.size >= REASONS_MAX && text !== OTHERS)
      this.add(OTHERS, first, count);
    else if (known === undefined) this.#found.set(text, { count, first });
    else known.count += count;
  }

  get list(): readonly Remark[] {
    return [...this.#found].map(([text, { count, first }]) => ({ text, count, first }));
  }

  count(text: string): number {
    return this.#found.get(text)?.count ?? 0;
  }
}

/** Prints a remark as one line: `12 × a fragment is missing, first at frame 17`. */
export function printRemark({ text, count, first }: Remark): string {
  const where = first === '' ? '' : `${count > 1 ? ', first at ' : ', at '}${first}`;
  return `${count > 1 ? `${count} × ` : ''}${text}${where}`;
}
