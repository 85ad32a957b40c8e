/** Renders clients and servers, using names for pods and addresses for the rest. */
import { partyName } from '../cli/live/figures.ts';
import { html, nothing, type TemplateResult } from 'lit-html';
import { nameFilter } from '../../tools/watch/name-filter.ts';
import type { Party } from '../../tools/watch/view.ts';
import { hasCaches, show, showsClients, showTool } from './page-state.ts';

/** The name with the address next to it. */
export function party(of: Party): TemplateResult {
  const name = partyName(of);
  return html`<span class="code">${name}</span>${
      of.isGone ? html` <span class="badge">gone</span>` : nothing
    }${name === of.address || of.address === '' ? nothing : html` <span class="quiet">${of.address}</span>`}`;
}

export function lookupsLink(text: string, filter: string): TemplateResult {
  return html`<button type="button" class="link" @click=${() => show('lookups', filter)}>
    ${text}
  </button>`;
}

/** A button that shows the lookups of a name. */
export function nameLink(text: string, name: string): TemplateResult {
  return lookupsLink(text, `name=${nameFilter(name).value}`);
}

/** A button that traces a name, as a particular client if one is given. */
export function traceLink(text: string, name: string, client = ''): TemplateResult {
  const isClient = showsClients && client !== '';
  const input = { name: name.replace(/\.$/, ''), ...(isClient && { client }) };
  return html`<button type="button" class="link" @click=${() => showTool('trace', input)}>
    ${text}
  </button>`;
}

/** A button that shows the cache entries for a name, if the server is able to query caches. */
export function cacheLink(text: string, name: string): TemplateResult | typeof nothing {
  if (!hasCaches) return nothing;
  const input = { name: name.replace(/\.$/, '') };
  return html`<button type="button" class="link" @click=${() => showTool('cache', input)}>
    ${text}
  </button>`;
}
