/** The Diff panel, which compares two Corefiles and shows the replies that differ. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { commandLine } from './command-line.ts';
import { EngineClient } from './engine-client.ts';
import type { DiffResult, OutcomeLine, ShownChange } from './engines/diff-engine.ts';
import { lineEditor } from './line-editor.ts';
import { inputs } from './page-state.ts';
import { engineResults, follow } from './shown-state.ts';

const engine = new EngineClient('diff');
const { before, after } = inputs.diff;

/** Compares when the panel is opened, and again after each change. */
export function followDiff(): void {
  follow(
    'diff',
    () => ({ before: before.value, after: after.value }),
    (given) => {
      if (given.before.trim() === '' || given.after.trim() === '') engine.stop();
      else engine.run(given);
    },
  );
}

export function diffPanel(): TemplateResult {
  return html`<div class="stack">
    <form class="inputs pair" @submit=${(event: Event) => event.preventDefault()}>
      <h2 class="hidden">Diff</h2>
      ${lineEditor('before-text', 'Corefile before', before)}
      ${lineEditor('after-text', 'Corefile after', after)}
    </form>
    <div class="results">${engineResults(engine, idle, summary, results)}</div>
  </div>`;
}

const words = {
  answers: 'other answers',
  upstreams: 'other upstreams',
  ttls: 'other TTLs',
} as const;
const severities = { answers: 'error', upstreams: 'warning', ttls: 'note' } as const;

const idle = html`<p class="empty">
  Paste two Corefiles. This page serves both, sends them the same queries, and compares the answers.
</p>`;

function results({ changes, left, notes }: DiffResult): TemplateResult {
  return html`${[...notes, ...left.map((text) => `Not compared: ${text}`)].map(
      (text) => html`<p class="remark">${text}</p>`,
    )}
    <ul class="findings">
      ${changes.map(changeItem)}
    </ul>
    <p class="quiet">
      The objects are those of the example cluster. Upstreams are simulated, and each has its own
      answers.
    </p>
    ${commandLine(
      'ndots diff Corefile Corefile.new',
      'with these texts in the files Corefile and Corefile.new',
    )}`;
}

function summary({ questions, same, changes }: DiffResult): string {
  if (changes.length === 0) return `${questions} queries: no answers change.`;
  return `${questions} queries: ${questions - same} have other answers, of ${changes.length} ${changes.length === 1 ? 'kind' : 'kinds'}.`;
}

/** Renders queries that changed in the same way. */
export function changeItem(each: ShownChange): TemplateResult {
  const { kind, question, moment, count, others } = each;
  return html`<li class="finding ${severities[kind]}">
    <p class="head">
      <span class="badge ${severities[kind]}">${words[kind]}</span>
      <code>${question}</code>${moment === '' ? nothing : html`<span>${moment}</span>`}
      ${count > 1 ? html`<span class="quiet">${count} questions</span>` : nothing}
    </p>
    <div class="pair">
      ${side('before', 'Before', each.before)} ${side('after', 'After', each.after)}
    </div>
    ${
      others.length === 0
        ? nothing
        : html`<p class="quiet">also <code>${others.join(' ')}</code></p>`
    }
  </li>`;
}

function side(name: string, label: string, lines: readonly OutcomeLine[]): TemplateResult {
  return html`<div class="outcome ${name}">
    <p class="label">${label}</p>
    ${lines.map(({ text, inner }) => html`<p class=${inner ? 'record' : 'rcode'}>${text}</p>`)}
  </div>`;
}
