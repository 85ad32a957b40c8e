/** Shows the command that prints the same result. */
import { html, type TemplateResult } from 'lit-html';
import { copyButton } from '../web/copy-button.ts';

/** @param note about the files that the command expects, which contain the pasted text */
export function commandLine(command: string, note: string): TemplateResult {
  return html`<div class="command">
    <p class="quiet">The same in a terminal${note === '' ? '' : `, ${note}`}:</p>
    <code class="line">${command}</code>
    ${copyButton('Copy command', () => command)}
  </div>`;
}
