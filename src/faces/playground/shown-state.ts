/** The engine's progress and problems as shown by every panel. Also starts the runs. */
import { effect, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { EngineClient, EngineState } from './engine-client.ts';
import type { EngineName, Engines, ShownProblem } from './engine-messages.ts';
import { page, type PageName } from './page-state.ts';

/** Pause after typing before an engine runs, milliseconds. */
const PAUSE_MS = 350;

/** Runs a function when its panel is opened, and again whenever a signal that it reads changes. */
export function follow<T>(name: PageName, input: () => T, run: (input: T) => void): void {
  let timer = 0;
  let isFirst = true;
  effect(() => {
    if (page.value !== name) return;
    const given = input();
    clearTimeout(timer);
    timer = setTimeout(() => run(given), isFirst ? 0 : PAUSE_MS) as unknown as number;
    isFirst = false;
  });
}

/** A status line that screen readers announce whenever it changes. */
export function statusLine(state: EngineState<EngineName>, done: string): TemplateResult {
  const text =
    state.kind === 'running'
      ? `Running${state.progress === '' ? '' : `: ${state.progress}`} …`
      : state.kind === 'done'
        ? done
        : state.kind === 'failed'
          ? 'There is a problem with the input.'
          : '';
  return html`<p class="status ${state.kind}" role="status">${text}</p>`;
}

/**
 * Renders the latest result of an engine, or why there is none.
 * @param idle shown until there is an input
 */
export function engineResults<N extends EngineName>(
  engine: EngineClient<N>,
  idle: TemplateResult,
  summary: (result: Engines[N]['result']) => string,
  shown: (result: Engines[N]['result']) => TemplateResult,
): TemplateResult {
  const state = engine.state.value;
  const result = engine.result.value;
  if (state.kind === 'failed') return html`${statusLine(state, '')}${problemList(state.problems)}`;
  if (result === null) return state.kind === 'idle' ? idle : statusLine(state, '');
  return html`${statusLine(state, summary(result))} ${shown(result)}`;
}

export function problemList(problems: readonly ShownProblem[]): TemplateResult {
  return html`<ul class="findings">
    ${problems.map(
      ({ text, place, hint, remedy }) =>
        html`<li class="finding error">
          <p class="head">
            <span class="badge error">error</span>
            ${place === null ? nothing : html`<code>${place}</code>`}
          </p>
          <p class="text">${text}</p>
          ${hint === null ? nothing : html`<p class="hint">${hint}</p>`}
          ${remedy === null ? nothing : html`<p class="remedy">${remedy}</p>`}
        </li>`,
    )}
  </ul>`;
}

export function textField(
  id: string,
  label: string,
  value: Signal<string>,
  rows: number,
): TemplateResult {
  return html`<div>
    <label class="label" for=${id}>${label}</label>
    <textarea
      id=${id}
      rows=${rows}
      spellcheck="false"
      autocomplete="off"
      autocapitalize="off"
      wrap="off"
      .value=${value.value}
      @input=${({ target }: Event) => (value.value = (target as HTMLTextAreaElement).value)}
    ></textarea>
  </div>`;
}
