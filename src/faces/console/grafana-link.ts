/** Links to a point in time on the `--grafana` dashboard. */
import { html, nothing, type TemplateResult } from 'lit-html';

/** Milliseconds to include before and after, so that the moment is in the middle of the charts. */
const AROUND_MS = 300_000;

const { grafana = '' } = document.getElementById('page')!.dataset;

/** Renders the link, or nothing if no dashboard is configured. */
export function grafanaLink(
  text: string,
  fromMs: number,
  toMs: number,
): TemplateResult | typeof nothing {
  if (grafana === '') return nothing;
  const href = grafana
    .replaceAll('{from}', String(Math.floor(fromMs) - AROUND_MS))
    .replaceAll('{to}', String(Math.ceil(toMs) + AROUND_MS));
  return html`<a class="link" href=${href} target="_blank" rel="noopener noreferrer">${text}</a>`;
}
