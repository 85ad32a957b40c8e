/** The console: the bar with its tabs and filter, and the current page. */
import { effect, signal, type Signal } from '@preact/signals-core';
import { html, nothing, type TemplateResult } from 'lit-html';
import { unfilteredText } from '../cli/live/finding-words.ts';
import { show as draw } from '../web/show.ts';
import { panelId, tabId, tabList, type Tab } from '../web/tabs.ts';
import { applyTheme, themeSwitch } from '../web/theme.ts';
import { clientsPage } from './clients-page.ts';
import { clusterChoice, followClusters } from './cluster-choice.ts';
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
import { followHandOver } from './hand-over.ts';
import { lookupsPage } from './lookups-page.ts';
import { mapPage } from './map-page.ts';
import { namesPage } from './names-page.ts';
import { nowPage } from './now-page.ts';
import {
  filter,
  followAddress,
  isShown,
  liveNames,
  page,
  pageKeys,
  pageNames,
  show,
  shownSource,
  tool,
  type ConsolePage,
  type LiveName,
  type ToolName,
} from './page-state.ts';
import { serversPage } from './servers-page.ts';

const labels: Readonly<Record<ConsolePage, string>> = {
  now: 'Now',
  lookups: 'Lookups',
  clients: 'Clients',
  names: 'Names',
  servers: 'Servers',
  findings: 'Findings',
  map: 'Map',
  trace: 'Trace',
  configuration: 'Configuration',
  cache: 'Cache',
  checks: 'Checks',
};
const tabs: readonly Tab<ConsolePage>[] = pageNames
  .filter(isShown)
  .map((name) => ({ name, label: labels[name] }));

const states: Readonly<Record<StreamState, string>> = {
  connecting: 'Connecting',
  live: 'Live',
  paused: 'Paused',
  lost: 'No connection',
  replaced: 'Stopped: too many pages are open',
  refused: 'Refused',
};

const root = document.getElementById('page')!;

/** A lazily loaded module with the pages that do not need a stream. */
interface ToolPages {
  toolPage(name: ToolName): TemplateResult;
  /** Starts following the page state. */
  followTools(): void;
}

const loaders: Readonly<Record<ToolName, () => Promise<ToolPages>>> = {
  trace: () => import('./tool-pages.ts'),
  configuration: () => import('./tool-pages.ts'),
  cache: () => import('./server-pages.ts'),
  checks: () => import('./server-pages.ts'),
};
/** Loaded modules; a string: why loading failed. */
const tools: Signal<ReadonlyMap<ToolName, ToolPages | string>> = signal(new Map());

function bar(): TemplateResult {
  const isLive = tool.value === null;
  return html`<a class="skip" href="#main" @click=${skip}>Skip to content</a>
    <header class="bar">
      <h1 class="brand">ndots <span>console</span></h1>
      ${tabList('Views', tabs, page.value, (name) => show(name))} ${clusterChoice()}
      <span class="grow"></span>
      ${
        isLive
          ? html`<span class=${`state ${state.value}`} role="status">${states[state.value]}</span>
              <button
                type="button"
                class="button"
                aria-pressed=${paused.value ? 'true' : 'false'}
                @click=${pause}
              >
                ${paused.value || state.value === 'replaced' ? 'Resume' : 'Pause'}
              </button>`
          : nothing
      }
      ${themeSwitch()}
    </header>
    ${isLive ? filterBar() : nothing}`;
}

function filterBar(): TemplateResult {
  return html`<div class="filter" role="search">
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
      ${refusal.value === '' ? filterNote() : refusal.value}
    </p>
  </div>`;
}

function filterNote(): string {
  const name = liveNames.find((each) => each === page.value);
  const parts = [
    shownSource.value,
    name === undefined ? '' : unfilteredText(name, filter.value.trim() !== ''),
    missed.value === 0 ? '' : `${missed.value} updates skipped because this browser is slow`,
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** Skips to the content but leaves the address alone, because it is the page state. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function pause(): void {
  if (state.value === 'replaced') resume();
  else paused.value = !paused.value;
}

const pages: Readonly<Record<LiveName, () => TemplateResult | null>> = {
  now: () => drawn('now', nowPage),
  lookups: () => drawn('lookups', lookupsPage),
  clients: () => drawn('clients', clientsPage),
  names: () => drawn('names', namesPage),
  servers: () => drawn('servers', serversPage),
  findings: () => drawn('findings', findingsPage),
  map: () => drawn('map', mapPage),
};

function drawn<V extends LiveName>(
  name: V,
  of: (view: NonNullable<ReturnType<typeof latest<V>>>) => TemplateResult,
): TemplateResult | null {
  const view = latest(name);
  return view === null ? null : of(view as NonNullable<ReturnType<typeof latest<V>>>);
}

function shown(): TemplateResult {
  const name = liveNames.find((each) => each === page.value);
  if (name !== undefined)
    return pages[name]() ?? html`<p class="empty">Waiting for the first data.</p>`;
  const loaded = tools.value.get(tool.value!) ?? 'Loading this page.';
  return typeof loaded === 'string'
    ? html`<p class="empty">${loaded}</p>`
    : loaded.toolPage(tool.value!);
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
        ${name === page.value ? shown() : nothing}
      </section>`,
  )}`;
}

/** Loads a tool's module the first time the tool is opened. */
function followTool(): void {
  const begun = new Set<ToolName>();
  const followed = new Set<ToolPages>();
  effect(() => {
    const name = tool.value;
    if (name === null || begun.has(name)) return;
    begun.add(name);
    const take = (loaded: ToolPages | string): void => {
      tools.value = new Map([...tools.peek(), [name, loaded]]);
    };
    loaders[name]().then(
      (pages) => {
        if (!followed.has(pages)) pages.followTools();
        followed.add(pages);
        take(pages);
      },
      () => take('This page could not be loaded. Reload the console.'),
    );
  });
}

/** `1` to `9`, `0` and `c` select a page, `/` focuses the filter, and `p` pauses. In fields, these keys are text. */
function onKey(event: KeyboardEvent): void {
  const { target, key, ctrlKey, metaKey, altKey } = event;
  if (ctrlKey || metaKey || altKey) return;
  if (target instanceof HTMLElement && target.matches('input[type="text"], textarea, select')) {
    if (key === 'Escape') target.blur();
    return;
  }
  const name = key.length === 1 ? pageNames[pageKeys.indexOf(key)] : undefined;
  if (name !== undefined && isShown(name)) show(name);
  else if (key === '/') {
    event.preventDefault();
    document.getElementById('filter')?.focus();
  } else if (key === 'p' && tool.value === null) pause();
}

/** Sets the document title and scrolls the selected tab into view. */
function followTab(): void {
  effect(() => {
    document.title = `${labels[page.value]} · ndots: ${shownSource.value}`;
    const id = tabId(page.value);
    queueMicrotask(() =>
      document.getElementById(id)?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    );
  });
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
followHandOver();
followClusters();
followTool();
followTab();
