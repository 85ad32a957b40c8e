/** A live table with headers that sort, rows that expand, and a line about anything left out. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { repeat } from 'lit-html/directives/repeat.js';
import type { Listed } from '../../tools/watch/view.ts';
import { classOf, type Cell, type Column } from '../web/table.ts';
import { leftOut } from './now-figures.ts';
import { opened, reversed, sort, sortBy } from './page-state.ts';

export interface LiveColumn<Row> extends Column<Row> {
  /** The server's sort key. Absent if the column cannot be sorted. */
  readonly sort?: string;
}

export interface LiveTableParts<Row> {
  readonly caption: string;
  readonly list: Listed<Row>;
  readonly columns: readonly LiveColumn<Row>[];
  /** The default sort column. */
  readonly usual: string;
  readonly idOf: (row: Row) => string;
  readonly details: (row: Row) => TemplateResult;
  readonly toneOf?: (row: Row) => 'plain' | 'warning' | 'error';
  /** Text shown when there are no rows. */
  readonly none: string;
}

export function liveTable<Row>(parts: LiveTableParts<Row>): TemplateResult {
  const { caption, list, columns, idOf, details, toneOf, none } = parts;
  return html`<p class="quiet" aria-live="off">${leftOut(list)}</p>
    ${
      list.rows.length === 0
        ? html`<p class="empty">${none}</p>`
        : html`<div class="table" role="region" tabindex="0" aria-label=${caption}>
            <table class="live">
              <caption class="hidden">
                ${caption}
              </caption>
              <thead>
                <tr>
                  ${columns.map((column) => headCell(column, parts.usual))}
                </tr>
              </thead>
              <tbody>
                ${repeat(list.rows, idOf, (row) => {
                  const id = idOf(row);
                  const isOpen = opened.value === id;
                  return html`<tr
                      class=${toneOf?.(row) ?? nothing}
                      @click=${(event: Event) => clicked(event, id)}
                    >
                      ${columns.map((column, index) => bodyCell(column, row, index === 0 ? id : null))}
                    </tr>
                    ${
                      isOpen
                        ? html`<tr class="details" id=${`details-${id}`}>
                            <td colspan=${columns.length}>${details(row)}</td>
                          </tr>`
                        : nothing
                    }`;
                })}
              </tbody>
            </table>
          </div>`
    }`;
}

/** The facts in a row's details. */
export function facts(rows: readonly (readonly [term: string, fact: Fact])[]): TemplateResult {
  return html`<dl class="facts">
    ${rows.map(
      ([term, fact]) =>
        html`<dt>${term}</dt>
          <dd>${fact}</dd>`,
    )}
  </dl>`;
}

type Fact = Cell | readonly TemplateResult[];

/** Opens or closes a row. A click on a control or the end of a text selection does something else. */
function clicked({ target }: Event, id: string): void {
  if ((target as Element).closest('button, a') !== null) return;
  if (getSelection()?.isCollapsed === false) return;
  opened.value = opened.value === id ? '' : id;
}

function headCell<Row>(
  { head, sort: key, numeric }: LiveColumn<Row>,
  usual: string,
): TemplateResult {
  const isSorted = key !== undefined && (sort.value === '' ? usual : sort.value) === key;
  const order = isSorted ? (reversed.value ? 'ascending' : 'descending') : undefined;
  return html`<th
    scope="col"
    class=${numeric === true ? 'number' : nothing}
    aria-sort=${order ?? nothing}
  >
    ${
      key === undefined
        ? head
        : html`<button type="button" class="sort" @click=${() => sortBy(key)}>
            ${head}<span aria-hidden="true"
              >${order === undefined ? '' : reversed.value ? ' ▲' : ' ▼'}</span
            >
          </button>`
    }
  </th>`;
}

/** @param id identifies the row, for its first cell; null for any other cell */
function bodyCell<Row>(column: LiveColumn<Row>, row: Row, id: string | null): TemplateResult {
  if (id === null) return html`<td class=${classOf(column)}>${column.cell(row)}</td>`;
  const isOpen = opened.value === id;
  return html`<th scope="row" class=${classOf(column)}>
    <button
      type="button"
      class="row"
      aria-expanded=${isOpen ? 'true' : 'false'}
      aria-controls=${isOpen ? `details-${id}` : nothing}
      @click=${() => (opened.value = isOpen ? '' : id)}
    >
      <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span> ${column.cell(row)}
    </button>
  </th>`;
}
