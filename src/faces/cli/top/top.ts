/** `ndots top`: what happens now, on a terminal, or printed for scripts. */
import { systemClock } from '../../../server/base/clock.ts';
import { Problem } from '../../../server/base/problem.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { addressOwners } from '../capture/capture-names.ts';
import { readLean } from '../capture/lean-reading.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { colourDepth } from '../screen/cell-style.ts';
import type { Terminal } from '../screen/full-screen.ts';
import { processTerminal } from '../screen/process-terminal.ts';
import { untilSignal } from '../until-signal.ts';
import { printDocument, printPage } from './printed-page.ts';
import { followNames } from '../live/follow-names.ts';
import { startFeed, type PacketFeed } from '../live/live-feed.ts';
import { serverTokenOf } from '../live/live-options.ts';
import { parseTopOptions, type TopOptions } from './top-options.ts';
import { TopScreen } from './top-screen.ts';
import { runTraceWords } from './trace-as-client.ts';

/** The period between lines of JSON, milliseconds. */
const LINE_MS = 1000;

/** The verb `top`. */
export const top: Command = {
  name: 'top',
  async run(words, io) {
    const options = parseTopOptions(words);
    const isScreen = !options.once && options.output === 'text';
    const terminal = isScreen ? processTerminal(options.files.includes('-')) : null;
    if (isScreen && terminal === null) throw noTerminal();
    const note = (text: string): void => io.err(`ndots top: ${text}\n`);
    const model = new LiveModel({
      limits: options.limits,
      owners: await addressOwners(options, io, note),
    });
    const asked = untilSignal();
    const feed = await startFeed(options, model, systemClock, serverTokenOf(options, io.env));
    const stop = (): void => feed.stop();
    asked.addEventListener('abort', stop, { once: true });
    if (asked.aborted) stop();
    const timer = options.forMs === null ? null : setTimeout(stop, options.forMs);
    const forget = followNames(options, io, model);
    const lean = readLean();
    try {
      if (terminal !== null) await onScreen(terminal, { options, io, feed, model, asked });
      else if (options.once) await printedOnce({ options, io, feed, model });
      else await asLines({ options, io, feed, model });
    } finally {
      lean();
      stop();
      if (timer !== null) clearTimeout(timer);
      forget();
    }
    return asked.aborted && options.files.length > 0 && terminal === null
      ? EXIT.interrupted
      : EXIT.ok;
  },
};

interface Run {
  readonly options: TopOptions;
  readonly io: Io;
  readonly feed: PacketFeed;
  readonly model: LiveModel;
}

async function onScreen(
  terminal: Terminal,
  { options, io, feed, model, asked }: Run & { readonly asked: AbortSignal },
): Promise<void> {
  let quit: () => void = () => undefined;
  const quitted = new Promise<void>((resolve) => (quit = resolve));
  const screen = new TopScreen({
    ask: (query) => model.view(query),
    feed,
    terminal,
    depth: wantsColour(options, io) ? colourDepth(io.env) : 'none',
    clock: systemClock,
    options,
    program: io.program,
    trace: (words, columns, signal) => runTraceWords(words, io, columns, signal),
    quit,
  });
  asked.addEventListener('abort', quit, { once: true });
  // A replay stays on the screen when it is over; what cannot be read at all ends it.
  const failed: unknown[] = [];
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

async function printedOnce({ options, io, feed, model }: Run): Promise<void> {
  await feed.over;
  if (options.output === 'json') io.out(printDocument(options, model));
  else io.out(printPage(options, model, io));
}

async function asLines({ options, io, feed, model }: Run): Promise<void> {
  const timer = setInterval(() => io.out(printDocument(options, model)), LINE_MS);
  try {
    await feed.over;
    io.out(printDocument(options, model));
  } finally {
    clearInterval(timer);
  }
}

function noTerminal(): Problem {
  return new Problem({
    code: 'no-terminal',
    text: 'there is no terminal to draw on',
    hint: 'Standard output is a file or a pipe, TERM is dumb, or the container has no terminal (-t).',
    remedy: 'ndots top --once prints the view; ndots top -o json prints a line each second.',
  });
}
