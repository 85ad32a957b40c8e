/** A button that copies text to the clipboard and confirms it. */
import { signal } from '@preact/signals-core';
import { html, type TemplateResult } from 'lit-html';

/** Display time of the confirmation is shown, milliseconds. */
const SHOWN_MS = 2000;

const copied = signal('');

/** @param text called when the button is pressed */
export function copyButton(label: string, text: () => string): TemplateResult {
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text());
      copied.value = label;
    } catch {
      copied.value = `${label} failed`;
    }
    setTimeout(() => (copied.value = ''), SHOWN_MS);
  };
  const said =
    copied.value === label ? 'Copied' : copied.value === `${label} failed` ? 'Not allowed' : label;
  return html`<button type="button" class="button" @click=${copy}>${said}</button>`;
}
