/** Clients and servers in words: a pod by its name, all else by its address. */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { Party } from '../../tools/watch/view.ts';
import { show } from './page-state.ts';

/** `shop/cart-7d4b9c`, or the address where nothing else is known. */
export function partyName({ name, workload, namespace, address }: Party): string {
  if (name !== '') return name;
  return workload === '' ? address : `${namespace}/${workload}`;
}

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
