/** Long names with places where a line may end: after each dot. */
import { html, type TemplateResult } from 'lit-html';

/** The name, with a place to break after each dot. */
export function breakable(name: string): TemplateResult {
  const labels = name.split('.');
  return html`${labels.map((label, index) =>
    index < labels.length - 1 ? html`${label}.<wbr />` : label,
  )}`;
}
