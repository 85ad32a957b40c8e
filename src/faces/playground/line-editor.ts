/** A text field with line numbers, and marks next to the lines that have findings. */
import type { Signal } from '@preact/signals-core';
import { html, type TemplateResult } from 'lit-html';

export interface LineMark {
  readonly line: number;
  readonly severity: 'error' | 'warning' | 'note';
}

const worst = ['error', 'warning', 'note'] as const;

/** Limit on numbered lines, because more would slow down typing. */
const NUMBERED_MAX = 5000;

export function lineEditor(
  id: string,
  label: string,
  value: Signal<string>,
  marks: readonly LineMark[] = [],
): TemplateResult {
  const lines = Math.min(NUMBERED_MAX, value.value.split('\n').length);
  const byLine = Map.groupBy(marks, ({ line }) => line);
  const edit = ({ target }: Event): void => {
    value.value = (target as HTMLTextAreaElement).value;
  };
  const scroll = ({ target }: Event): void => {
    const { scrollTop, previousElementSibling: gutter } = target as HTMLTextAreaElement;
    if (gutter !== null) gutter.scrollTop = scrollTop;
  };
  return html`<div>
    <label class="label" for=${id}>${label}</label>
    <div class="editor">
      <div class="gutter" aria-hidden="true">
        ${Array.from({ length: lines }, (_, index) => {
          const own = byLine.get(index + 1) ?? [];
          const severity = worst.find((each) => own.some((mark) => mark.severity === each));
          return html`<span class=${severity ?? ''}>${index + 1}</span>`;
        })}
      </div>
      <textarea
        id=${id}
        spellcheck="false"
        autocomplete="off"
        autocapitalize="off"
        wrap="off"
        .value=${value.value}
        @input=${edit}
        @scroll=${scroll}
      ></textarea>
    </div>
  </div>`;
}

export function goToLine(id: string, line: number): void {
  const field = document.getElementById(id) as HTMLTextAreaElement | null;
  if (field === null) return;
  const before = field.value.split('\n').slice(0, line - 1);
  const start = before.reduce((sum, text) => sum + text.length + 1, 0);
  const end = field.value.indexOf('\n', start);
  field.focus();
  field.setSelectionRange(start, end < 0 ? field.value.length : end);
  const height = field.scrollHeight / Math.max(1, field.value.split('\n').length);
  field.scrollTop = Math.max(0, (line - 4) * height);
}
