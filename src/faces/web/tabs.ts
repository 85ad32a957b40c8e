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
    const to = target(event.key, at, tabs.length);
    const tab = to === null ? undefined : tabs[to];
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

function target(key: string, at: number, count: number): number | null {
  switch (key) {
    case 'ArrowRight':
      return (at + 1) % count;
    case 'ArrowLeft':
      return (at + count - 1) % count;
    case 'Home':
      return 0;
    case 'End':
      return count - 1;
    default:
      return null;
  }
}
