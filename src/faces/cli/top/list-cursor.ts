/** A page's selected row and scroll position. */
import type { TopRow } from './pages/top-page.ts';

/**
 * The cursor on a page. It stays on the selected row while rows are added and removed. Until it is moved, it stays on
 * the newest row at the top.
 */
export class ListCursor {
  /** Index of the selected row, or -1 if no row can be selected. */
  index = -1;
  offset = 0;
  #id: string | null = null;
  #moved = false;

  /**
   * Moves the cursor to match the rows in this frame.
   * @param height visible lines
   */
  settle(rows: readonly TopRow[], height: number): void {
    const first = rows.findIndex(({ item }) => item !== null);
    if (first < 0) this.index = -1;
    else if (!this.#moved) this.index = first;
    else {
      const same = rows.findIndex(({ item }) => item !== null && item.id === this.#id);
      this.index = same >= 0 ? same : this.#nearest(rows, Math.max(0, this.index));
    }
    this.#id = rows[this.index]?.item?.id ?? null;
    this.offset = Math.max(0, Math.min(this.offset, rows.length - height));
    if (this.#moved && this.#follows) this.#show(rows, height);
  }

  /** False after scrolling past the last selectable row. */
  #follows = true;

  /** Moves from one selectable row to another, and scrolls the page after the last one. */
  move(rows: readonly TopRow[], by: number, height: number): void {
    const step = Math.sign(by);
    let at = this.index;
    let left = Math.abs(by);
    let reached = this.index;
    while (left > 0) {
      at += step;
      if (at < 0 || at >= rows.length) break;
      left--;
      if (rows[at]!.item !== null) reached = at;
      // A single step goes to the next row, skipping any lines in between.
      else if (Math.abs(by) === 1) left++;
    }
    if (reached !== this.index && this.index >= 0) {
      this.index = reached;
      this.#follows = true;
      this.#moved = reached !== rows.findIndex(({ item }) => item !== null);
      this.#id = rows[reached]!.item!.id;
      this.#show(rows, height);
      if (!this.#moved) this.offset = 0;
    } else {
      this.#follows = false;
      this.offset = Math.max(0, Math.min(this.offset + by, rows.length - height));
    }
  }

  /** Selects a row, even one that is not visible. */
  select(id: string): void {
    this.#id = id;
    this.#moved = true;
    this.#follows = true;
  }

  #show(rows: readonly TopRow[], height: number): void {
    if (this.index < this.offset) this.offset = this.index;
    if (this.index >= this.offset + height) this.offset = this.index - height + 1;
    // Lines above the first row and below the last one are shown together with it.
    if (rows.slice(0, this.index).every(({ item }) => item === null) && this.index < height)
      this.offset = 0;
  }

  #nearest(rows: readonly TopRow[], from: number): number {
    for (let apart = 0; apart < rows.length; apart++) {
      if (rows[from - apart]?.item) return from - apart;
      if (rows[from + apart]?.item) return from + apart;
    }
    return -1;
  }
}
