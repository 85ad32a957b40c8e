/**
 * The live view on a terminal. Keys navigate between pages, rows and details. The screen queries the model and redraws
 * once a second.
 */
import { every, type Clock, type Timer } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import { printFilterLine } from '../../../tools/capture/filter-line.ts';
import { sortKeys, viewNames, type ViewName } from '../../../tools/watch/view.ts';
import type { CellGrid } from '../screen/cell-grid.ts';
import { FullScreen, type Terminal } from '../screen/full-screen.ts';
import type { ColourDepth } from '../screen/cell-style.ts';
import type { KeyPress } from '../screen/key-input.ts';
import { plainLine, type StyledLine } from '../screen/styled-line.ts';
import { equivalentWords, printCommand } from './equivalent-command.ts';
import { FilterPrompt } from './filter-prompt.ts';
import { ListCursor } from './list-cursor.ts';
import { fitPage, seePage, type SeenView } from './pages/top-pages.ts';
import { drawFrame } from './top-frame.ts';
import type { PacketFeed } from '../live/live-feed.ts';
import { helpLines } from './top-help.ts';
import type { TopOptions } from './top-options.ts';
import {
  paragraph,
  type AskModel,
  type SortKey,
  type TopBody,
  type TopItem,
} from './pages/top-page.ts';
import { planTrace, TraceFiles } from './trace-as-client.ts';

/** Refresh interval, milliseconds. */
const REFRESH_MS = 1000;
/** Display time of a message, milliseconds. */
const MESSAGE_MS = 4000;
/** The number of rows that End looks for. Laying out this many takes about 50 ms. */
const END_ROWS = 5000;
/** Time spans that `w` cycles through, in milliseconds. Null is the whole window. */
const SPANS = [null, 60_000, 10_000] as const;

/** Keys that do the same as others. */
const sameKeys: Readonly<Record<string, string>> = {
  ...{ k: 'up', j: 'down', g: 'home', G: 'end' },
  ...{ backspace: 'escape', ' ': 'p', f1: '?', h: '?' },
};

interface Pane {
  readonly title: string;
  /** The item that it shows, or null if there is none. */
  readonly item: TopItem | null;
  lines(width: number): readonly StyledLine[];
  offset: number;
  closed?(): void;
}

export interface TopScreenParts {
  readonly ask: AskModel;
  readonly feed: () => PacketFeed;
  /** Switches to the next cluster and returns its name, or null if there is at most one. */
  readonly next: (() => string) | null;
  readonly terminal: Terminal;
  readonly depth: ColourDepth;
  readonly clock: Clock;
  readonly options: TopOptions;
  /** The program name as invoked. */
  readonly program: string;
  /** Runs `ndots trace` and returns its output. */
  trace(words: readonly string[], columns: number, signal: AbortSignal): Promise<string>;
  quit(): void;
}

interface PageState {
  sort: SortKey | null;
  reversed: boolean;
  cursor: ListCursor;
  widths: Map<number, number>;
}

export class TopScreen {
  readonly #parts: TopScreenParts;
  readonly #screen: FullScreen;
  readonly #pages = new Map<ViewName, PageState>();
  readonly #history: string[] = [];
  readonly #files = new TraceFiles();
  #view: ViewName;
  #filters: readonly GivenFilter[];
  #span = 0;
  #panes: Pane[] = [];
  #prompt: FilterPrompt | null = null;
  #isPaused = false;
  #seen: SeenView | null = null;
  #body: TopBody | null = null;
  /** Why the model cannot answer, for people. */
  #problem = '';
  #message: { readonly text: string; readonly untilMs: number } | null = null;
  #height = 1;
  #width = 80;
  #refresh: Timer | null = null;

  constructor(parts: TopScreenParts) {
    this.#parts = parts;
    const { options, terminal, depth, clock } = parts;
    this.#view = options.view;
    this.#filters = options.filters;
    const page = this.#page(options.view);
    page.sort = options.sort as SortKey | null;
    page.reversed = options.reversed;
    this.#screen = new FullScreen(terminal, depth, {
      draw: (grid) => this.#draw(grid),
      key: (key) => this.#key(key),
      clock,
    });
  }

  start(): void {
    this.#see();
    this.#screen.enter();
    this.#refresh = every(this.#parts.clock, REFRESH_MS, () => this.#tick());
  }

  /** Restores the terminal, and removes temporary files. */
  stop(): void {
    this.#refresh?.cancel();
    this.#closeAll();
    this.#screen.leave();
    this.#files.remove();
  }

  #tick(): void {
    if (!this.#isPaused) this.#see();
    if (this.#message !== null && this.#message.untilMs <= this.#parts.clock.now())
      this.#message = null;
    this.#screen.draw();
  }

  #page(view: ViewName): PageState {
    let page = this.#pages.get(view);
    if (page === undefined) {
      page = { sort: null, reversed: false, cursor: new ListCursor(), widths: new Map() };
      this.#pages.set(view, page);
    }
    return page;
  }

  /** @param least the number of rows that are needed in any case */
  #see(least = 0): void {
    const { sort, reversed, cursor } = this.#page(this.#view);
    try {
      this.#seen = seePage(this.#parts.ask, this.#view, {
        filters: this.#filters,
        sort,
        reversed,
        // Rows up to the scroll position, plus some more.
        most: Math.max(least, cursor.offset + 2 * this.#height + 20),
        lastMs: SPANS[this.#span]!,
      });
      this.#problem = '';
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      this.#problem = error.message;
    }
  }

  /** Lays out the current page from the model's reply. */
  #fit(): void {
    const { sort, reversed, widths } = this.#page(this.#view);
    if (this.#seen !== null && this.#seen.view === this.#view)
      this.#body = fitPage(this.#seen, { width: this.#width - 2, widths, sort, reversed });
  }

  #draw(grid: CellGrid): void {
    const pane = this.#panes.at(-1) ?? null;
    const { cursor } = this.#page(this.#view);
    if (this.#width !== grid.columns) for (const each of this.#pages.values()) each.widths.clear();
    this.#width = grid.columns;
    const width = grid.columns - 2;
    this.#fit();
    this.#height = drawFrame(grid, {
      view: this.#view,
      seen: this.#seen,
      feed: this.#parts.feed(),
      isPaused: this.#isPaused,
      filters: this.#filters,
      spanMs: SPANS[this.#span]!,
      prompt: this.#prompt,
      message: this.#problem !== '' ? this.#problem : (this.#message?.text ?? ''),
      pane:
        pane === null ? null : { title: pane.title, lines: pane.lines(width), offset: pane.offset },
      can: () => this.#can(pane),
      body: this.#body,
      cursor,
    });
  }

  /** Keys that apply to the selected row, for the hints. */
  #can(pane: Pane | null): ReadonlySet<string> {
    const item = pane === null ? this.#selected : pane.item;
    const keys = new Set<string>();
    if (item === null) return keys;
    if (item.lookups !== null) keys.add('l');
    if (this.#view !== 'servers') keys.add('t');
    if (pane === null || item.about !== undefined) keys.add('enter');
    return keys;
  }

  get #selected(): TopItem | null {
    return this.#body?.rows[this.#page(this.#view).cursor.index]?.item ?? null;
  }

  #key(key: KeyPress): void {
    if (this.#prompt !== null) this.#promptKey(key);
    else this.#command(key);
    this.#screen.draw();
  }

  #promptKey(key: KeyPress): void {
    const result = this.#prompt!.key(key);
    if (result.kind === 'open') return;
    this.#prompt = null;
    if (result.kind === 'done') this.#filter(result.filters);
  }

  #filter(filters: readonly GivenFilter[]): void {
    this.#filters = filters;
    for (const page of this.#pages.values()) page.widths.clear();
    this.#page(this.#view).cursor = new ListCursor();
    this.#see();
  }

  #command(key: KeyPress): void {
    const { name, ctrl } = key;
    if (ctrl) {
      if (name === 'c') this.#parts.quit();
      else if (name === 'l') this.#screen.redraw();
      else if (name === 'z') this.#screen.suspend();
      else if (name === 'd' || name === 'f') this.#move(this.#height);
      else if (name === 'u' || name === 'b') this.#move(-this.#height);
      return;
    }
    const at = '123456'.indexOf(name);
    if (at >= 0 && name.length === 1) return this.#open(viewNames[at]!);
    this.#commands[sameKeys[name] ?? name]?.(key);
  }

  readonly #commands: Readonly<Record<string, (key: KeyPress) => void>> = {
    q: () => this.#parts.quit(),
    tab: ({ shift }) => {
      const at = viewNames.indexOf(this.#view) + (shift ? -1 : 1);
      this.#open(viewNames.at(at % viewNames.length)!);
    },
    up: () => this.#move(-1),
    down: () => this.#move(1),
    pageup: () => this.#move(-this.#height),
    pagedown: () => this.#move(this.#height),
    home: () => this.#move(-1e6),
    end: () => this.#end(),
    enter: () => this.#enter(),
    escape: () => this.#back(),
    '/': () => this.#ask(),
    x: () => this.#nextCluster(),
    s: () => this.#sort(),
    r: () => this.#reverse(),
    w: () => this.#nextSpan(),
    p: () => this.#pause(),
    l: () => this.#lookups(),
    t: () => this.#trace(),
    y: () => this.#copy(),
    '+': () => this.#speed(true),
    '-': () => this.#speed(false),
    '?': () => this.#push('Help', helpLines),
  };

  #open(view: ViewName): void {
    this.#closeAll();
    this.#message = null;
    this.#view = view;
    this.#body = null;
    this.#see();
  }

  /** Moves to the last row, even if it has not been requested yet. */
  #end(): void {
    if (this.#panes.length === 0 && !this.#isPaused) {
      this.#see(END_ROWS);
      this.#fit();
    }
    this.#move(1e6);
  }

  #move(by: number): void {
    const pane = this.#panes.at(-1);
    if (pane !== undefined) {
      const lines = pane.lines(this.#width - 2).length;
      pane.offset = Math.max(0, Math.min(pane.offset + by, lines - this.#height));
      return;
    }
    const { cursor } = this.#page(this.#view);
    const rows = this.#body?.rows ?? [];
    cursor.move(rows, by, this.#height);
    // The cursor is near the end of the requested rows, so request some more.
    if (cursor.index > rows.length - this.#height && !this.#isPaused) this.#see();
  }

  #enter(): void {
    const pane = this.#panes.at(-1);
    if (pane === undefined) {
      const item = this.#selected;
      if (item === null) return;
      if (item.about !== undefined && this.#view === 'now') return this.#goTo(item.about);
      return this.#show(item);
    }
    if (pane.item?.about !== undefined) this.#goTo(pane.item.about);
  }

  /** Opens a row on another page. */
  #goTo({ view, id }: NonNullable<TopItem['about']>): void {
    const order = { sort: null, reversed: false };
    const one: AskModel = (asked) => this.#parts.ask({ ...asked, id });
    const seen = seePage(one, view, { ...order, filters: [], most: 1, lastMs: null });
    const { rows } = fitPage(seen, { ...order, width: this.#width, widths: new Map() });
    const item = rows.find((row) => row.item !== null)?.item ?? null;
    if (item === null) return this.#say('It no longer exists.');
    this.#open(view);
    this.#page(view).cursor.select(item.id);
    this.#show(item);
  }

  #show(item: TopItem): void {
    const { ask } = this.#parts;
    let shown: {
      readonly width: number;
      readonly lines: readonly StyledLine[];
      seen: SeenView | null;
    } | null = null;
    const lines: Pane['lines'] = (width) => {
      // Details show the same moment as the page.
      if (shown === null || shown.width !== width || shown.seen !== this.#seen)
        shown = { width, lines: item.details(ask, width), seen: this.#seen };
      return shown.lines;
    };
    this.#push('', lines, { item });
  }

  #push(title: string, lines: Pane['lines'], more: Partial<Pane> = {}): void {
    this.#panes.push({ title, lines, item: null, offset: 0, ...more });
  }

  #back(): void {
    const pane = this.#panes.pop();
    if (pane !== undefined) return pane.closed?.();
    if (this.#filters.length > 0) this.#filter([]);
  }

  #closeAll(): void {
    for (const pane of this.#panes) pane.closed?.();
    this.#panes = [];
  }

  #nextCluster(): void {
    const { next } = this.#parts;
    this.#say(next === null ? 'there is one cluster' : `cluster ${next()}`);
    this.#closeAll();
    this.#see();
  }

  #ask(): void {
    const { cluster, manifests } = this.#parts.options;
    const hasOwners = cluster || manifests !== null;
    this.#closeAll();
    this.#prompt = new FilterPrompt(printFilterLine(this.#filters), this.#history, hasOwners);
  }

  #sort(): void {
    const keys: readonly SortKey[] = sortKeys[this.#view];
    if (keys.length === 0) return this.#say('This page cannot be sorted.');
    const page = this.#page(this.#view);
    const at = page.sort === null ? 0 : keys.indexOf(page.sort);
    page.sort = keys[(at + 1) % keys.length]!;
    page.reversed = false;
    this.#sorted(page);
  }

  #reverse(): void {
    const page = this.#page(this.#view);
    if (sortKeys[this.#view].length === 0) return;
    page.reversed = !page.reversed;
    this.#sorted(page);
  }

  #sorted(page: PageState): void {
    page.cursor = new ListCursor();
    this.#see();
    const by = page.sort ?? sortKeys[this.#view][0];
    this.#say(`Sorted by ${by}${page.reversed ? ', reversed' : ''}.`);
  }

  #nextSpan(): void {
    this.#span = (this.#span + 1) % SPANS.length;
    this.#see();
  }

  #pause(): void {
    this.#isPaused = !this.#isPaused;
    this.#parts.feed().pace?.pause(this.#isPaused);
    if (!this.#isPaused) this.#see();
  }

  #speed(faster: boolean): void {
    const { pace } = this.#parts.feed();
    if (pace === null) return this.#say('The speed of live traffic cannot be changed.');
    pace.change(faster);
    this.#say(`Replay at ${pace.text}.`);
  }

  #lookups(): void {
    const item = this.#panes.at(-1)?.item ?? this.#selected;
    if (item === null || item.lookups === null) return this.#say('This row has no lookups.');
    const filters = [...this.#filters, ...item.lookups];
    this.#open('lookups');
    this.#filter(filters);
  }

  #trace(): void {
    const { ask, options, program } = this.#parts;
    const item = this.#panes.at(-1)?.item ?? this.#selected;
    const target = item?.target?.(ask) ?? null;
    if (target === null) return this.#say('This row has no lookup to trace.');
    const { words, notes } = planTrace(target, ask, options, (text) => this.#files.write(text));
    const stop = new AbortController();
    let printed: string | null = null;
    const lines: Pane['lines'] = (width) => [
      ...paragraph(printCommand(program, words), width, { style: 'title' }),
      ...notes.flatMap((note) => paragraph(note, width, { style: 'dim' })),
      [],
      ...(printed ?? 'Asking …').trimEnd().split('\n').map(plainLine),
    ];
    this.#push('Trace', lines, { closed: () => stop.abort() });
    const columns = Math.max(20, this.#width - 2);
    void this.#parts
      .trace(words, columns, stop.signal)
      .catch(
        (error: unknown) => `It failed: ${error instanceof Error ? error.message : String(error)}`,
      )
      .then((text) => {
        printed = text;
        this.#screen.draw();
      });
  }

  #copy(): void {
    const { options, program } = this.#parts;
    const pane = this.#panes.at(-1);
    const shown = { view: this.#view, filters: this.#filters, item: pane?.item ?? null };
    const command = printCommand(program, equivalentWords(shown, options));
    this.#screen.copy(command);
    const copied = 'It was copied to the clipboard, if your terminal allows that (OSC 52).';
    this.#push('Command', (width) => [
      ...paragraph('This command prints the same:', width),
      [],
      ...paragraph(command, width, { style: 'strong' }),
      [],
      ...paragraph(copied, width, { style: 'dim' }),
    ]);
  }

  #say(text: string): void {
    this.#message = { text, untilMs: this.#parts.clock.now() + MESSAGE_MS };
  }
}
