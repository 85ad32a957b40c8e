/** `ndots top`: shows live DNS traffic on a terminal, or prints it for scripts. */
import { systemClock } from '../../../server/base/clock.ts';
import { count } from '../../../server/base/counted.ts';
import { Problem } from '../../../server/base/problem.ts';
import { readLean } from '../capture/lean-reading.ts';
import { progressText, regularProgress } from '../capture/reading-progress.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { colourDepth } from '../screen/cell-style.ts';
import type { Terminal } from '../screen/full-screen.ts';
import { processTerminal } from '../screen/process-terminal.ts';
import { untilSignal } from '../until-signal.ts';
import { printDocument, printPage } from './printed-page.ts';
import { startClusters, type LiveCluster } from '../live/live-clusters.ts';
import { parseTopOptions, type TopOptions } from './top-options.ts';
import { TopScreen } from './top-screen.ts';
import { runTraceWords } from './trace-as-client.ts';

/** Interval between JSON lines, milliseconds. */
const LINE_MS = 1000;

export const top: Command = {
  name: 'top',
  async run(words, io) {
    const options = parseTopOptions(words);
    const isScreen = !options.once && options.output === 'text';
    const terminal = isScreen ? processTerminal(options.files.includes('-')) : null;
    if (isScreen && terminal === null) throw noTerminal();
    const note = (text: string): void => io.err(`ndots top: ${text}\n`);
    const asked = untilSignal();
    const clusters = await startClusters(options, io, note);
    const stop = (): void => {
      for (const cluster of clusters) cluster.stop();
    };
    asked.addEventListener('abort', stop, { once: true });
    if (asked.aborted) stop();
    const timer = options.forMs === null ? null : setTimeout(stop, options.forMs);
    const lean = readLean();
    try {
      if (terminal !== null) await onScreen(terminal, { options, io, clusters, asked });
      else if (options.once) await printedOnce({ options, io, clusters });
      else await asLines({ options, io, clusters });
    } finally {
      lean();
      stop();
      if (timer !== null) clearTimeout(timer);
    }
    if (terminal !== null) return EXIT.ok;
    if (asked.aborted && options.files.length > 0) return EXIT.interrupted;
    return clusters.every(isUnread) ? EXIT.failed : EXIT.ok;
  },
};

interface Run {
  readonly options: TopOptions;
  readonly io: Io;
  /** At least one. */
  readonly clusters: readonly LiveCluster<TopOptions>[];
}

async function onScreen(
  terminal: Terminal,
  { options, io, clusters, asked }: Run & { readonly asked: AbortSignal },
): Promise<void> {
  let quit: () => void = () => undefined;
  const quitted = new Promise<void>((resolve) => (quit = resolve));
  let [shown] = clusters as [LiveCluster<TopOptions>];
  const screen = new TopScreen({
    ask: (query) => shown.model.view(query),
    feed: () => shown.feed,
    next:
      clusters.length < 2
        ? null
        : () => (shown = clusters[(clusters.indexOf(shown) + 1) % clusters.length]!).name,
    terminal,
    depth: wantsColour(options, io) ? colourDepth(io.env) : 'none',
    clock: systemClock,
    get options() {
      return shown.options;
    },
    program: io.program,
    trace: (words, columns, signal) => runTraceWords(words, io, columns, signal),
    quit,
  });
  asked.addEventListener('abort', quit, { once: true });
  // A finished replay stays on the screen, whereas unreadable input ends it.
  const failed: unknown[] = [];
  for (const { feed } of clusters)
    feed.over.then(
      () => {
        if (options.forMs !== null || feed.pace === null) quit();
      },
      (error: unknown) => {
        failed.push(error);
        quit();
      },
    );
  screen.start();
  try {
    await quitted;
  } finally {
    screen.stop();
    terminal.close();
  }
  if (failed.length > 0) throw failed[0];
}

/** True if no input could be read, for example because no server answers. The output contains the reasons. */
function isUnread({ model }: LiveCluster): boolean {
  const isFailed = model.inputs.every((input) => {
    const { state, queries } = input.row();
    return state === 'failed' && queries === 0;
  });
  // Inputs that were read may have been dropped.
  return isFailed && model.view({ view: 'now' }).queries === 0;
}

async function printedOnce({ options, io, clusters }: Run): Promise<void> {
  const progress = regularProgress(io, () => clusters.map(readSoFar).join('; '));
  try {
    await overAll(clusters);
  } finally {
    clearInterval(progress);
  }
  for (const { name, model } of clusters) {
    noteUnread(model, options, io);
    if (options.output === 'json') io.out(printDocument(options, model, name));
    else io.out(`${name === '' ? '' : `${name}\n`}${printPage(options, model, io)}`);
  }
}

/** If every file is unreadable, the error of the first one is printed instead. */
function noteUnread({ inputs }: LiveCluster['model'], { files }: TopOptions, io: Io): void {
  if (files.length === 0) return;
  for (const input of inputs) {
    const { state, why } = input.row();
    if (state === 'failed') io.err(`ndots top: ${why}\n`);
  }
}

function readSoFar({ feed, model }: LiveCluster): string {
  const queries = model.inputs.reduce((sum, input) => sum + input.row().queries, 0);
  return progressText(feed.name, [
    feed.progress,
    queries === 0 ? '' : count(queries, 'query', 'queries'),
  ]);
}

async function asLines({ options, io, clusters }: Run): Promise<void> {
  const print = (): void => {
    for (const { name, model } of clusters) io.out(printDocument(options, model, name));
  };
  const timer = setInterval(print, LINE_MS);
  try {
    await overAll(clusters);
    print();
    for (const { model } of clusters) noteUnread(model, options, io);
  } finally {
    clearInterval(timer);
  }
}

async function overAll(clusters: readonly LiveCluster[]): Promise<void> {
  await Promise.all(clusters.map(({ feed }) => feed.over));
}

function noTerminal(): Problem {
  return new Problem({
    code: 'no-terminal',
    text: 'there is no terminal to draw on',
    hint: 'Standard output is a file or a pipe, TERM is dumb, or the container has no terminal (-t).',
    remedy: 'ndots top --once prints the view; ndots top -o json prints a line each second.',
  });
}
