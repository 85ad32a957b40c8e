/** The Lookup panel, which shows the queries that clients send for a name, and cheaper alternatives. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { AddressFamily } from '../../tools/resolver/client.ts';
import type { QueryDocument, TraceDocument } from '../../tools/resolver/trace-document.ts';
import { shellWord } from '../cli/shell-word.ts';
import { label, outcome } from '../cli/trace/trace-outcome.ts';
import { outcomeOf, rowsOf, type TraceRow } from '../cli/trace/trace-rows.ts';
import { breakable } from '../web/breakable.ts';
import { table, type Column } from '../web/table.ts';
import { cheaperList, ndotsTable } from './cheaper-list.ts';
import { commandLine } from './command-line.ts';
import { EngineClient } from './engine-client.ts';
import type { TraceInput, TraceResult } from './engines/trace-engine.ts';
import { inputs } from './page-state.ts';
import { engineResults, follow, textField } from './shown-state.ts';

const engine = new EngineClient('trace');
const { name, resolv, answers, cluster, clients, type } = inputs.lookup;

/** The libraries that most programs use. */
const FOUR = ['glibc', 'musl', 'go', 'c-ares'];

function input(): TraceInput {
  const families: readonly AddressFamily[] =
    type.value === 'A' ? [4] : type.value === 'AAAA' ? [6] : [4, 6];
  return {
    name: name.value.trim(),
    resolvConf: resolv.value,
    families,
    cluster: cluster.value !== 'no',
    answers: answers.value,
    clients: clients.value === 'all' ? ['all'] : FOUR,
  };
}

/** Plans the lookup when the panel is opened and whenever its input changes. */
export function followLookup(): void {
  follow('lookup', input, (given) => {
    if (given.name === '') engine.stop();
    else engine.run(given);
  });
}

/** Renders a client's name and files, and the queries that clients send. */
export function lookupPanel(): TemplateResult {
  return html`<div class="split">
    <form class="inputs" @submit=${(event: Event) => event.preventDefault()}>
      <h2>Lookup</h2>
      <div>
        <label class="label" for="name">Name</label>
        <input
          id="name"
          type="text"
          spellcheck="false"
          autocomplete="off"
          autocapitalize="off"
          .value=${name.value}
          @input=${({ target }: Event) => (name.value = (target as HTMLInputElement).value)}
        />
      </div>
      ${textField('resolv', 'resolv.conf of the client', resolv, 5)}
      <div class="row">
        ${choice('type', 'Addresses', type.value, [
          ['', 'A and AAAA'],
          ['A', 'A'],
          ['AAAA', 'AAAA'],
        ])}
        ${choice('clients', 'Clients', clients.value, [
          ['four', 'glibc, musl, Go, c-ares'],
          ['all', 'all'],
        ])}
      </div>
      <label class="check"
        ><input
          type="checkbox"
          .checked=${cluster.value !== 'no'}
          @change=${({ target }: Event) =>
            (cluster.value = (target as HTMLInputElement).checked ? 'yes' : 'no')}
        />
        The example cluster answers cluster names</label
      >
      ${textField('answers', 'Answers to other names', answers, 6)}
      <p class="quiet">
        One rule for each name, in YAML. Names without a rule do not exist (NXDOMAIN).
      </p>
    </form>
    <div class="results">${engineResults(engine, idle, summary, results)}</div>
  </div>`;
}

function choice(
  id: 'type' | 'clients',
  words: string,
  value: string,
  options: readonly (readonly [string, string])[],
): TemplateResult {
  const signal = { type, clients }[id];
  return html`<div>
    <label class="label" for=${id}>${words}</label>
    <select
      id=${id}
      @change=${({ target }: Event) => (signal.value = (target as HTMLSelectElement).value)}
    >
      ${options.map(
        ([key, text]) => html`<option value=${key} ?selected=${key === value}>${text}</option>`,
      )}
    </select>
  </div>`;
}

const idle = html`<p class="empty">
  Type a name to see the queries that each client sends for it.
</p>`;

function results(result: TraceResult): TemplateResult {
  const { documents, notes } = result;
  return html`${notes.map((note) => html`<p class="remark">${note}</p>`)} ${clientTable(documents)}
    ${differences(result)}
    <h3>What would be cheaper</h3>
    ${cheaperList(documents)} ${ndotsTable(result)}
    <h3>What each client sends, and why</h3>
    <div class="columns" role="group" aria-label="Queries of each client">
      ${documents.map(clientColumn)}
    </div>
    ${commandLine(command(), 'with these texts in the files resolv.conf and answers.yaml')}`;
}

function clientTable(documents: readonly TraceDocument[]): TemplateResult {
  const columns: readonly Column<TraceDocument>[] = [
    {
      head: 'Client',
      cell: (each) =>
        html`<span class="mark ${each.result.ok ? 'good' : 'bad'}" aria-hidden="true"></span
          >${label(each)}`,
    },
    { head: 'Queries', numeric: true, cell: ({ totals }) => totals.queries },
    { head: 'Names', numeric: true, cell: ({ totals }) => totals.names },
    { head: 'Ports', numeric: true, cell: ({ totals }) => totals.ports },
    { head: 'Time', numeric: true, cell: ({ result }) => `${result.elapsedMs} ms` },
    { head: 'Result', code: true, cell: (each) => outcome(each) },
  ];
  return table('Clients, queries and results', columns, documents);
}

function differences({ differences: all }: TraceResult): TemplateResult {
  const told = all.filter(({ matters }) => matters !== 'no');
  if (told.length === 0) return html``;
  return html`<ul class="findings">
    ${told.map(({ matters, clients: who, text }) => {
      const severity = matters === 'yes' ? 'error' : 'warning';
      return html`<li class="finding ${severity}">
        <p class="head">
          <span class="badge ${severity}">${severity}</span> <strong>${who}</strong>
        </p>
        <p class="text">${text}</p>
      </li>`;
    })}
  </ul>`;
}

function clientColumn(document: TraceDocument): TemplateResult {
  const { totals, result, remarks, steps } = document;
  const rows = rowsOf(document);
  return html`<article class="client">
    <h4>${label(document)}</h4>
    <p class="sum ${result.ok ? 'good' : 'bad'}">
      ${totals.queries} ${totals.queries === 1 ? 'query' : 'queries'}, ${result.elapsedMs} ms:
      <code>${outcome(document)}</code>
    </p>
    ${remarks.map(({ line, text }) => html`<p class="remark">resolv.conf line ${line}: ${text}</p>`)}
    ${
      rows.length === 0
        ? html`<p class="quiet">Sends nothing. ${steps.map(({ text }) => text).join(' ')}</p>`
        : html`<ol class="queries">
            ${rows.map(queryRow)}
          </ol>`
    }
  </article>`;
}

function queryRow(row: TraceRow): TemplateResult {
  const { first, queries } = row;
  const then = outcomeOf(row);
  return html`<li>
    <p class="asked">
      <code class="name">${breakable(first.name)}</code>
      <span class="at">${first.atMs} ms</span>
    </p>
    <p class="replies">
      ${queries.map(
        (query) =>
          html`<span class="reply ${replyClass(query)}"
            ><span class="type">${query.type}</span> ${
              query.data.length > 0 ? query.data.join(' ') : query.answer
            }</span
          >`,
      )}
      ${first.protocol === 'tcp' ? html`<span class="type">TCP</span>` : nothing}
    </p>
    <p class="why">${withoutRule(first.why)}</p>
    ${then === '' ? nothing : html`<p class="then">${withoutRule(then)}</p>`}
  </li>`;
}

function replyClass({ data, answer }: QueryDocument): string {
  if (data.length > 0) return 'good';
  return answer.startsWith('NXDOMAIN') || answer.startsWith('NODATA') ? 'none' : 'bad';
}

/** The verdict without the exit code, because pages do not have one. */
function summary({ verdict }: TraceResult): string {
  return verdict.replace(', hence exit code 1', '');
}

/** Removes the rule name at the end, which is only useful with `ndots trace --explain`. */
function withoutRule(text: string): string {
  return text.replaceAll(/ \[[\w-]+\]/g, '');
}

function command(): string {
  const given = input();
  return [
    'ndots trace',
    shellWord(given.name),
    ...(type.value === '' ? [] : [type.value]),
    '--resolv-conf resolv.conf',
    ...(given.cluster ? ['--manifests examples/cluster'] : ['--plan']),
    ...(given.answers.trim() === '' ? [] : ['--answers answers.yaml']),
    `--client ${given.clients.join(',')}`,
  ].join(' ');
}
