/** The theme switch: system, light or dark. */
import { signal, type Signal } from '@preact/signals-core';
import { html, type TemplateResult } from 'lit-html';

/** `auto` follows the system. */
export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'ndots-theme';
const themes: readonly (readonly [Theme, string])[] = [
  ['auto', 'Auto'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

/** The selected theme, stored if the browser allows it. */
const theme: Signal<Theme> = signal(remembered());

function remembered(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return themes.find(([name]) => name === found)?.[0] ?? 'auto';
  } catch {
    // Storage is disabled.
    return 'auto';
  }
}

function choose(name: Theme): void {
  theme.value = name;
  applyTheme();
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // Storage is disabled, so the choice is lost when the page is closed.
  }
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = theme.value;
}

export function themeSwitch(): TemplateResult {
  return html`<fieldset class="switch">
    <legend class="hidden">Colours</legend>
    ${themes.map(
      ([name, label]) =>
        html`<label
          ><input
            type="radio"
            name="theme"
            .checked=${theme.value === name}
            @change=${() => choose(name)}
          /><span>${label}</span></label
        >`,
    )}
  </fieldset>`;
}
