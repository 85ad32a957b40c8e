/** Tabs as described in the ARIA Authoring Practices, with a single tab stop, arrow keys, Home and End. */
import { html, type TemplateResult } from 'lit-html';

export interface Tab<Name extends string> {
  readonly name: Name;
  readonly label: string;
}

export function panelId(name: string): string {
  return `panel-${name}`;
}

export function tabId(name: string): string {
  return `tab-${name}`;
}

/** Renders a tab list. Panels must use the ids from `panelId`. */
export function tabList<Name extends string>(
  label: string,
  tabs: readonly Tab<Name>[],
  chosen: Name,
  choose: (name: Name) => void,
): TemplateResult {
  const move = (event: KeyboardEvent): void => {
    const at = tabs.findIndex(({ name }) => name === chosen);
    const tab = tabs[target(event.key, at, tabs.length) ?? -1];
    if (tab === undefined) return;
    event.preventDefault();
    choose(tab.name);
    document.getElementById(tabId(tab.name))?.focus();
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} @keydown=${move}>
    ${tabs.map(
      ({ name, label: words }) =>
        html`<button
          type="button"
          role="tab"
          class="tab"
          id=${tabId(name)}
          aria-controls=${panelId(name)}
          aria-selected=${name === chosen ? 'true' : 'false'}
          tabindex=${name === chosen ? 0 : -1}
          @click=${() => choose(name)}
        >
          ${words}
        </button>`,
    )}
  </div>`;
}

function target(key: string, at: number, count: number): number | undefined {
  return new Map([
    ['ArrowRight', (at + 1) % count],
    ['ArrowLeft', (at + count - 1) % count],
    ['Home', 0],
    ['End', count - 1],
  ]).get(key);
}
