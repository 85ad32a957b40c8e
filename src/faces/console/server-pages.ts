/** The Cache and Checks pages, which query servers. They are loaded on first use. */
import { html, type TemplateResult } from 'lit-html';
import { cachePage, followCache } from './cache-page.ts';
import { checksPage, followChecks } from './checks-page.ts';
import type { ToolName } from './page-state.ts';

export function toolPage(name: ToolName): TemplateResult {
  return html`<div class="asked">${name === 'cache' ? cachePage() : checksPage()}</div>`;
}

export function followTools(): void {
  followCache();
  followChecks();
}
