/** Allows long names to wrap after each dot. */
import { html, type TemplateResult } from 'lit-html';

export function breakable(name: string): TemplateResult {
  const labels = name.split('.');
  return html`${labels.map((label, index) =>
    index < labels.length - 1 ? html`${label}.<wbr />` : label,
  )}`;
}
