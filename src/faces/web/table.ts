/** Tables with a caption and headers. If a table is too wide, its region scrolls by keyboard. */
import { html, nothing, type TemplateResult } from 'lit-html';

export type Cell = string | number | TemplateResult;

export interface Column<Row> {
  readonly head: string;
  /** Right-aligns numbers. */
  readonly numeric?: boolean;
  /** Uses a fixed-width font for names and addresses. */
  readonly code?: boolean;
  cell(row: Row): Cell;
}

/** Renders a table in which the first column labels the rows. */
export function table<Row>(
  caption: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  rowClass: (row: Row) => string = () => '',
): TemplateResult {
  return html`<div class="table" role="region" tabindex="0" aria-label=${caption}>
    <table>
      <caption class="hidden">
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map(
            (column) => html`<th scope="col" class=${classOf(column)}>${column.head}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr class=${rowClass(row) || nothing}>
              ${columns.map((column, index) =>
                index === 0
                  ? html`<th scope="row" class=${classOf(column)}>${column.cell(row)}</th>`
                  : html`<td class=${classOf(column)}>${column.cell(row)}</td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

export function classOf<Row>({ numeric, code }: Column<Row>): string | typeof nothing {
  const classes = [numeric === true ? 'number' : '', code === true ? 'code' : ''];
  return classes.join(' ').trim() || nothing;
}
