/** Counts reasons why something was unreadable or skipped, one line each, however often it happened. */

export interface Remark {
  readonly text: string;
  readonly count: number;
  /** The first location: `frame 17`, `byte 4096`; empty: unknown. */
  readonly first: string;
}

/**
 * The number of distinct reasons. Reasons that include a number from the input, such as a link type, may be numerous.
 */
const REASONS_MAX = 100;
const OTHERS = 'other reasons, counted together';

/** Counts reasons. Beyond a hundred, the rest are counted together. */
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

/** A remark as one line: `12 × a fragment is missing, first at frame 17`. */
export function printRemark({ text, count, first }: Remark): string {
  const where = first === '' ? '' : `${count > 1 ? ', first at ' : ', at '}${first}`;
  return `${count > 1 ? `${count} × ` : ''}${text}${where}`;
}
