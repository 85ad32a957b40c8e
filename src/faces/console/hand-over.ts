/** Downloads for the lookups on the page, and the equivalent command. */
import { effect, signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import type { HandOverView } from '../cli/console/hand-over.ts';
import { copyButton } from '../web/copy-button.ts';
import { filter, ofCluster, page } from './page-state.ts';
import { readJson } from './read-json.ts';

const isOpen: Signal<boolean> = signal(false);
/** Null if not loaded yet or if the filter is invalid. */
const offer: Signal<HandOverView | null> = signal(null);

/** Loads the downloads for the filter while they are on the page. */
export function followHandOver(): void {
  effect(() => {
    const line = filter.value;
    if (!isOpen.value || page.value !== 'lookups') return;
    void read(line);
  });
}

async function read(line: string): Promise<void> {
  const found = await readJson<HandOverView>(`/api/hand-over?${parametersOf(line)}`);
  if (filter.peek() === line) offer.value = found;
}

function parametersOf(line: string): string {
  return ofCluster(line.trim() === '' ? {} : { filter: line }).toString();
}

export function handOver(): TemplateResult {
  return html`<details
    class="hand-over"
    @toggle=${({ target }: Event) => (isOpen.value = (target as HTMLDetailsElement).open)}
  >
    <summary>Export this selection</summary>
    ${isOpen.value && offer.value !== null ? offered(offer.value) : nothing}
  </details>`;
}

function offered({ command, noPackets }: HandOverView): TemplateResult {
  const parameters = parametersOf(filter.value);
  return html`<ul class="offers">
      ${
        noPackets === ''
          ? offerOf(
              `/api/lookups.pcapng?${parameters}`,
              'Packets',
              'pcapng, with pods and findings as comments',
            )
          : html`<li>
              <span class="button off">Packets</span> <span class="quiet">${noPackets}</span>
            </li>`
      }
      ${offerOf(
        `/api/view/lookups?rows=1000&download=lookups.json&${parameters}`,
        'Lookups',
        'JSON, the 1000 newest',
      )}
      ${offerOf(`/api/findings.html?${ofCluster()}`, 'Findings', 'one HTML file without scripts, showing the current state')}
    </ul>
    <div class="same-command">
      <span class="quiet">The same in a terminal</span>
      <code>${command}</code>
      ${copyButton('Copy command', () => command)}
    </div>`;
}

function offerOf(href: string, text: string, note: string): TemplateResult {
  return html`<li>
    <a class="button" href=${href} download>${text}</a> <span class="quiet">${note}</span>
  </li>`;
}
