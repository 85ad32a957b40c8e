/** The command that prints the same in a terminal. */
import { html, type TemplateResult } from 'lit-html';
import { copyButton } from '../web/copy-button.ts';

/** @param note what the command expects, as files with the pasted texts */
export function commandLine(command: string, note: string): TemplateResult {
  return html`<div class="command">
    <p class="quiet">The same in a terminal${note === '' ? '' : `, ${note}`}:</p>
    <code class="line">${command}</code>
    ${copyButton('Copy command', () => command)}
  </div>`;
}
