/** Clients and servers in words: a pod by its name, all else by its address. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Party } from '../../tools/watch/view.ts';
import { hasCaches, show, showsClients, showTool } from './page-state.ts';
import { partyName } from './party-name.ts';

/** The name, and the address beside it. */
export function party(of: Party): TemplateResult {
  const name = partyName(of);
  return html`<span class="code">${name}</span>${
      of.isGone ? html` <span class="badge">gone</span>` : nothing
    }${name === of.address || of.address === '' ? nothing : html` <span class="quiet">${of.address}</span>`}`;
}

/** A button that shows lookups of a filter. */
export function lookupsLink(text: string, filter: string): TemplateResult {
  return html`<button type="button" class="link" @click=${() => show('lookups', filter)}>
    ${text}
  </button>`;
}

/** A button that traces a name, as a client where one is given. */
export function traceLink(text: string, name: string, client = ''): TemplateResult {
  const isClient = showsClients && client !== '';
  const input = { name: name.replace(/\.$/, ''), ...(isClient && { client }) };
  return html`<button type="button" class="link" @click=${() => showTool('trace', input)}>
    ${text}
  </button>`;
}

/** A button that shows the cache entries of a name, where servers can be asked. */
export function cacheLink(text: string, name: string): TemplateResult | typeof nothing {
  if (!hasCaches) return nothing;
  const input = { name: name.replace(/\.$/, '') };
  return html`<button type="button" class="link" @click=${() => showTool('cache', input)}>
    ${text}
  </button>`;
}
