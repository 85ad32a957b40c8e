/** The console: the bar with its views and filter, and the view that is shown. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { viewNames, type ViewName } from '../../tools/watch/view.ts';
import { show as draw } from '../web/show.ts';
import { panelId, tabId, tabList, type Tab } from '../web/tabs.ts';
import { applyTheme, themeSwitch } from '../web/theme.ts';
import { clientsPage } from './clients-page.ts';
import { findingsPage } from './findings-page.ts';
import {
  followViews,
  latest,
  missed,
  paused,
  refusal,
  resume,
  state,
  type StreamState,
} from './live-source.ts';
import { lookupsPage } from './lookups-page.ts';
import { namesPage } from './names-page.ts';
import { nowPage } from './now-page.ts';
import { filter, followAddress, page, show } from './page-state.ts';
import { serversPage } from './servers-page.ts';

const labels: Readonly<Record<ViewName, string>> = {
  now: 'Now',
  lookups: 'Lookups',
  clients: 'Clients',
  names: 'Names',
  servers: 'Servers',
  findings: 'Findings',
};
const tabs: readonly Tab<ViewName>[] = viewNames.map((name) => ({ name, label: labels[name] }));

const states: Readonly<Record<StreamState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  paused: 'Paused',
  lost: 'No connection',
  replaced: 'Stopped: too many pages are open',
  refused: 'Refused',
};

const root = document.getElementById('page')!;
const source = root.dataset['source'] ?? '';

function bar(): TemplateResult {
  return html`<a class="skip" href="#main">Skip to content</a>
    <header class="bar">
      <h1 class="brand">ndots <span>console</span></h1>
      ${tabList('Views', tabs, page.value, (name) => show(name))}
      <span class="grow"></span>
      <span class=${`state ${state.value}`} role="status">${states[state.value]}</span>
      <button
        type="button"
        class="button"
        aria-pressed=${paused.value ? 'true' : 'false'}
        @click=${pause}
      >
        ${paused.value || state.value === 'replaced' ? 'Resume' : 'Pause'}
      </button>
      ${themeSwitch()}
    </header>
    <div class="filter" role="search">
      <label class="label" for="filter">Filter</label>
      <input
        id="filter"
        type="text"
        autocomplete="off"
        spellcheck="false"
        placeholder="name=*.example.com not rcode=NXDOMAIN"
        aria-describedby="filter-note"
        aria-invalid=${refusal.value === '' ? 'false' : 'true'}
        .value=${filter.value}
        @input=${(event: InputEvent) => (filter.value = (event.target as HTMLInputElement).value)}
      />
      <p id="filter-note" class=${refusal.value === '' ? 'quiet' : 'error'}>
        ${
          refusal.value === ''
            ? `${source}${missed.value === 0 ? '' : ` · ${missed.value} updates skipped: this browser is slow`}`
            : refusal.value
        }
      </p>
    </div>`;
}

function pause(): void {
  if (state.value === 'replaced') resume();
  else paused.value = !paused.value;
}

const pages: { readonly [V in ViewName]: () => TemplateResult | null } = {
  now: () => drawn('now', nowPage),
  lookups: () => drawn('lookups', lookupsPage),
  clients: () => drawn('clients', clientsPage),
  names: () => drawn('names', namesPage),
  servers: () => drawn('servers', serversPage),
  findings: () => drawn('findings', findingsPage),
};

function drawn<V extends ViewName>(
  name: V,
  of: (view: NonNullable<ReturnType<typeof latest<V>>>) => TemplateResult,
): TemplateResult | null {
  const view = latest(name);
  return view === null ? null : of(view as NonNullable<ReturnType<typeof latest<V>>>);
}

function main(): TemplateResult {
  return html`${tabs.map(
    ({ name }) =>
      html`<section
        role="tabpanel"
        class="panel"
        id=${panelId(name)}
        aria-labelledby=${tabId(name)}
        ?hidden=${name !== page.value}
      >
        ${name === page.value ? (pages[name]() ?? html`<p class="empty">Waiting for the first numbers.</p>`) : nothing}
      </section>`,
  )}`;
}

/**
 * `1` to `6` choose a view, `/` goes to the filter, `p` pauses. Text fields receive these keys as
 * text.
 */
function onKey(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  if (target instanceof HTMLInputElement && target.type === 'text') {
    if (key === 'Escape') target.blur();
    return;
  }
  const name = viewNames[Number(key) - 1];
  if (/^[1-9]$/.test(key) && name !== undefined) show(name);
  else if (key === '/') {
    event.preventDefault();
    document.getElementById('filter')?.focus();
  } else if (key === 'p') pause();
}

applyTheme();
followAddress();
root.replaceChildren();
const head = document.createElement('div');
const body = document.createElement('main');
body.id = 'main';
body.tabIndex = -1;
root.append(head, body);
draw(head, bar);
draw(body, main);
addEventListener('keydown', onKey);
followViews();
