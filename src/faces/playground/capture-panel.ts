/** The Capture panel, where users drop a capture to see doctor's findings. */
import { signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { NotFound } from '../../tools/doctor/diagnosis.ts';
import { printShare } from '../cli/live/figures.ts';
import { shellWord } from '../cli/shell-word.ts';
import { table, type Column } from '../web/table.ts';
import { commandLine } from './command-line.ts';
import { EngineClient } from './engine-client.ts';
import type { DoctorResult, ShownClient } from './engines/doctor-engine.ts';
import type { ShownFinding } from '../../tools/doctor/report/shown.ts';
import { engineResults, problemList } from './shown-state.ts';

const engine = new EngineClient('doctor');
const isOver = signal(false);

/** Bytes; the command line reads larger files. */
const FILE_MAX = 1024 ** 3;
const tooLarge = signal('');

function take(file: File | null | undefined): void {
  isOver.value = false;
  if (file === null || file === undefined) return;
  engine.stop();
  tooLarge.value = file.size > FILE_MAX ? file.name : '';
  if (tooLarge.value === '') engine.run({ file });
}

/** Reads the example, which is loaded on demand. */
async function openExample(): Promise<void> {
  const { EXAMPLE_CAPTURE, exampleCapture } = await import('./example-capture.ts');
  const bytes = Uint8Array.from(atob(exampleCapture), (letter) => letter.charCodeAt(0));
  take(new File([bytes], EXAMPLE_CAPTURE));
}

/** Renders the drop area and doctor's findings. */
export function capturePanel(): TemplateResult {
  const state = engine.state.value;
  const over = (event: DragEvent): void => {
    event.preventDefault();
    isOver.value = true;
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    take(event.dataTransfer?.files[0]);
  };
  // Choosing the same file again rereads it.
  const chosen = ({ target }: Event): void => {
    const field = target as HTMLInputElement;
    take(field.files?.[0]);
    field.value = '';
  };
  return html`<div class="stack">
    <form class="inputs" @submit=${(event: Event) => event.preventDefault()}>
      <h2>Capture</h2>
      <div
        class="drop ${isOver.value ? 'over' : ''}"
        @dragover=${over}
        @dragleave=${() => (isOver.value = false)}
        @drop=${drop}
      >
        <label for="file">Drop a capture here, or choose one</label>
        <input id="file" type="file" @change=${chosen} />
        <p class="quiet">
          pcap, pcapng, dnstap or a CoreDNS query log; gzip is supported. The file stays on this
          machine.
        </p>
        ${
          state.kind === 'running'
            ? html`<button type="button" class="button" @click=${() => engine.stop()}>Stop</button>`
            : nothing
        }
      </div>
    </form>
    <div class="results">${results()}</div>
  </div>`;
}

function results(): TemplateResult {
  if (tooLarge.value !== '')
    return problemList([
      {
        code: 'capture-too-large',
        text: `${tooLarge.value} is larger than 1 GiB.`,
        place: null,
        hint: 'A page has little memory.',
        remedy: `Run: ndots doctor ${tooLarge.value}`,
      },
    ]);
  return engineResults(engine, idle, summary, diagnosis);
}

const idle = html`<div class="empty">
  <p>Take a capture on the node, or in the pod that has the problem:</p>
  <p><code>tcpdump -i any -s 0 -w dns.pcap port 53</code></p>
  <p>
    <button type="button" class="button" @click=${openExample}>Open the example</button>
  </p>
</div>`;

function diagnosis(result: DoctorResult): TemplateResult {
  const { findings, remarks, clients, excluded, unknown, name } = result;
  return html`${numbers(result)} ${remarks.map((text) => html`<p class="remark">${text}</p>`)}
  ${
    findings.length === 0
      ? nothing
      : html`<ul class="findings">
          ${findings.map(finding)}
        </ul>`
  }
  ${
    clients.length === 0
      ? nothing
      : html`<h3>Clients</h3>
          ${clientTable(clients)}`
  }
  ${notFound('Excluded', excluded)} ${notFound('Cannot be checked with this input', unknown)}
  ${commandLine(`ndots doctor ${shellWord(name)}`, '')}`;
}

function summary({ findings, name }: DoctorResult): string {
  const critical = findings.filter(({ severity }) => severity === 'critical').length;
  if (critical > 0)
    return `${name}: ${critical} critical ${critical === 1 ? 'finding' : 'findings'}`;
  if (findings.length > 0)
    return `${name}: nothing critical, ${findings.length} other ${findings.length === 1 ? 'finding' : 'findings'}`;
  return `${name}: no finding`;
}

function numbers(result: DoctorResult): TemplateResult {
  const shown: readonly (readonly [string, string])[] = [
    ['packets', result.packets.toLocaleString('en')],
    ['seconds', result.seconds.toFixed(1)],
    ['queries', result.queries.toLocaleString('en')],
    ['without a reply', result.lost.toLocaleString('en')],
    ['lookups', result.lookups.toLocaleString('en')],
    ['lookups of a second or more', result.slowLookups.toLocaleString('en')],
    ['clients', result.clientCount.toLocaleString('en')],
    ['servers', result.servers.toLocaleString('en')],
  ];
  return html`<dl class="numbers">
    ${shown.map(
      ([word, value]) =>
        html`<div>
          <dt>${word}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

function finding(each: ShownFinding): TemplateResult {
  const { severity, code, title, confidence, seen, why, fix, prove, disproved, who, frames } = each;
  return html`<li class="finding ${severity}">
    <p class="head">
      <span class="badge ${severity}">${severity}</span>
      <span class="codeword">${code}</span>
      <strong>${title}</strong>
      <span class="quiet">confidence ${Math.round(confidence * 100)} %</span>
    </p>
    <dl class="facts">
      ${fact('Seen', seen)} ${fact('Who', whoText(who))} ${fact('Why', [why])} ${fact('Fix', fix)}
      ${fact('Prove', [prove, ...(disproved === '' ? [] : [`Disproved if: ${disproved}.`])])}
      ${fact('Look', frames.length === 0 ? [] : [`frames ${frames.join(' ')}`])}
    </dl>
  </li>`;
}

function fact(word: string, lines: readonly string[]): TemplateResult | typeof nothing {
  if (lines.length === 0) return nothing;
  return html`<dt>${word}</dt>
    ${lines.map((line) => html`<dd>${line}</dd>`)}`;
}

/** Limit of listed client groups. */
const GROUPS_MAX = 4;

function whoText({ clients, groups, resolvers }: ShownFinding['who']): readonly string[] {
  if (clients === 0) return [];
  const shown = groups
    .slice(0, GROUPS_MAX)
    .map(({ name, share }) => `${name} ${printShare(share)}`);
  const kinds = resolvers.map(([kind, number]) => `${kind} ${number}`);
  return [
    `${clients} ${clients === 1 ? 'client' : 'clients'}: ${shown.join(', ')}${groups.length > GROUPS_MAX ? ` and ${groups.length - GROUPS_MAX} more` : ''}`,
    ...(kinds.length === 0 ? [] : [`resolvers: ${kinds.join(', ')}`]),
  ];
}

function clientTable(clients: readonly ShownClient[]): TemplateResult {
  const columns: readonly Column<ShownClient>[] = [
    { head: 'Client', code: true, cell: ({ address }) => address },
    { head: 'Queries', numeric: true, cell: ({ queries }) => queries },
    { head: 'Without a reply', numeric: true, cell: ({ lost }) => lost },
    { head: 'Lookups', numeric: true, cell: ({ lookups }) => lookups },
    { head: 'Resolver', cell: ({ resolver }) => resolver },
  ];
  return table('Clients, busiest first', columns, clients);
}

function notFound(title: string, causes: readonly NotFound[]): TemplateResult | typeof nothing {
  if (causes.length === 0) return nothing;
  return html`<details>
    <summary>${title}: ${causes.length} ${causes.length === 1 ? 'cause' : 'causes'}</summary>
    <ul class="evidence">
      ${causes.map(({ name, reason }) => html`<li>${name}: ${reason}</li>`)}
    </ul>
  </details>`;
}
