/** Lists changes to the name or to `ndots` that make a lookup cheaper, along with the lookups that each one breaks. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { NdotsChoice } from '../../tools/resolver/ndots-plan.ts';
import type { CheaperDocument, TraceDocument } from '../../tools/resolver/trace-document.ts';
import { label } from '../cli/trace/trace-outcome.ts';
import { table, type Column } from '../web/table.ts';
import type { TraceResult } from './engines/trace-engine.ts';

/** A change, and how many queries it saves for each client. */
interface ShownChange {
  readonly change: CheaperDocument;
  readonly clients: Map<string, string[]>;
}

/** Shows each change only once, even if several clients share it. */
export function cheaperList(documents: readonly TraceDocument[]): TemplateResult {
  const changes = new Map<string, ShownChange>();
  for (const document of documents)
    for (const change of document.cheaper) {
      const now = document.totals.queries;
      if (!change.same || change.queries >= now) continue;
      const key = `${change.change} ${change.caution}`;
      const shown = changes.get(key) ?? { change, clients: new Map<string, string[]>() };
      const saving = `${change.queries} ${change.queries === 1 ? 'query' : 'queries'} instead of ${now}`;
      shown.clients.set(saving, [...(shown.clients.get(saving) ?? []), label(document)]);
      changes.set(key, shown);
    }
  if (changes.size === 0)
    return html`<p class="quiet">
      ${
        documents.every(({ result }) => !result.ok)
          ? 'No client resolves the name, so there is nothing to save.'
          : 'Nothing: no change to the name or to ndots finds the same with fewer queries.'
      }
    </p>`;
  return html`<ul class="changes">
    ${[...changes.values()].map(
      ({ change: { change, name, caution }, clients }) =>
        html`<li>
          <p class="head">
            <strong>${sentence(change)}</strong>${
              change.endsWith('final dot') ? html`: <code>${name}</code>` : nothing
            }
          </p>
          ${[...clients].map(
            ([saving, who]) => html`<p class="text">${saving}: ${who.join(', ')}</p>`,
          )}
          ${caution === '' ? nothing : html`<p class="hint">${caution}</p>`}
        </li>`,
    )}
  </ul>`;
}

function sentence(text: string): string {
  return text.startsWith('ndots') ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** Query counts for each value of `ndots`. */
export function ndotsTable({ plans, best }: TraceResult): TemplateResult {
  const [first] = plans;
  if (first === undefined || first.choices.length < 2) return html``;
  const values = first.choices.map(({ ndots }) => ndots);
  const choice = (plan: (typeof plans)[number], ndots: number): NdotsChoice | undefined =>
    plan.choices.find((one) => one.ndots === ndots);
  const columns: readonly Column<number>[] = [
    {
      head: 'ndots',
      cell: (value) =>
        `${value}${value === first.ndots ? ' (now)' : value === best ? ' (best)' : ''}`,
    },
    ...plans.map((plan): Column<number> => ({
      head: plan.client,
      numeric: true,
      cell: (value) => choice(plan, value)?.queries ?? '–',
    })),
    {
      head: 'Breaks',
      cell: (value) => {
        const broken = plans.filter((plan) => (choice(plan, value)?.broken.length ?? 0) > 0);
        return broken.length === 0 ? '–' : broken.map(({ client }) => client).join(', ');
      },
    },
  ];
  return table('Queries of this lookup for each value of ndots', columns, values, (value) =>
    value === best ? 'best' : '',
  );
}
