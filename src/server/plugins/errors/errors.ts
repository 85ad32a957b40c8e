/** `errors`: logs why queries failed. */
import { andThen, isLater } from '../../base/maybe.ts';
import type { Timer } from '../../base/clock.ts';
import { printDuration } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import { compilePattern, PatternError, type Pattern } from '../../base/pattern.ts';
import { position, required, optional } from '../../corefile/positions.ts';
import { chained, each, flag } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, value, wrong, type Value } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin, type WorkerContext } from '../../engine/contract/plugin.ts';
import { typeName } from '../../wire/iana.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';

type Level = 'error' | 'warning' | 'info' | 'debug';
const levels: readonly string[] = ['error', 'warning', 'info', 'debug'] satisfies Level[];

const stdout: Value<'stdout'> = value('stdout', ({ text }) =>
  text === 'stdout'
    ? text
    : wrong(`invalid log file: ${text}`, 'Errors always go to standard output.'),
);

const pattern: Value<Pattern> = value(
  'REGEXP',
  ({ text }) => {
    try {
      return compilePattern(text);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      return wrong(error.message, error.hint);
    }
  },
  ({ source }) => source,
);

const how = position('[warning|error|info|debug] [show_first]', '', (line) => {
  let level: Level | null = null;
  let showFirst = false;
  while (line.left > 0) {
    const { text, place } = line.take();
    if (levels.includes(text)) {
      if (level !== null) line.refuse('multiple log levels specified in consolidate', place);
      if (showFirst) line.refuse('log level must come before show_first in consolidate', place);
      level = text as Level;
    } else if (text === 'show_first') showFirst = true;
    else line.refuse(`unknown option in consolidate: ${text}`, place);
  }
  return { level: level ?? ('error' as const), showFirst };
});

const syntax = directive({
  name: 'errors',
  summary: 'logs why queries failed',
  repeat: 'once',
  args: { output: optional(stdout, { help: 'standard output, the only destination' }) },
  properties: {
    stacktrace: chained(flag('stacktrace', { help: 'include the stack when logging a panic' })),
    consolidate: each(
      'consolidate',
      { periodMs: required(duration('DURATION')), pattern: required(pattern), how },
      {
        help: 'count errors that match REGEXP and log one summary per DURATION; the first matching pattern applies',
      },
    ),
  },
});

/** Logs replies that have a cause. A failure without one, where a plugin chose SERVFAIL, is not logged. */
export const errors: Plugin = definePlugin({
  syntax,
  plan(options, plan) {
    if (options.stacktrace) plan.stacktrace = true;
  },
  setup(options, context, next) {
    const consolidations = options.consolidate.map(
      ({ periodMs, pattern: wanted, how: { level, showFirst } }) =>
        new Consolidation(context, wanted, periodMs, level, showFirst),
    );
    context.onStop(() => {
      for (const each of consolidations) each.stop();
    });
    const write = ({ name, type }: Query, { rcode }: Reply, text: string): void => {
      const line = (): string => `${rcode} ${name} ${typeName(type)}: ${text}`;
      const consolidation = consolidations.find((each) => each.matches(text));
      if (consolidation === undefined) context.log.error(line());
      else consolidation.count(line);
    };
    const note = (reply: Reply, query: Query): Reply => {
      if (reply.cause !== null) write(query, reply, reply.cause.message);
      return reply;
    };
    return (query) => {
      const reply = next(query);
      return isLater(reply) ? andThen(reply, note, query.keep()) : note(reply, query);
    };
  },
});

/**
 * Consolidates all errors that match a pattern. It counts them from the first one on, and logs the count at the end of
 * each period.
 */
class Consolidation {
  readonly #context: WorkerContext;
  readonly #pattern: Pattern;
  readonly #periodMs: number;
  readonly #level: Level;
  readonly #showFirst: boolean;
  #count = 0;
  #timer: Timer | null = null;
  #stopped = false;

  constructor(
    context: WorkerContext,
    wanted: Pattern,
    periodMs: number,
    level: Level,
    showFirst: boolean,
  ) {
    this.#context = context;
    this.#pattern = wanted;
    this.#periodMs = periodMs;
    this.#level = level;
    this.#showFirst = showFirst;
  }

  matches(text: string): boolean {
    return this.#pattern.test(text);
  }

  count(line: () => string): void {
    if (this.#stopped) return this.#say(line());
    this.#count++;
    if (this.#count > 1) return;
    if (this.#showFirst) this.#say(line());
    this.#timer = this.#context.clock.after(this.#periodMs, () => this.#tell());
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#tell();
  }

  #tell(): void {
    const count = this.#count;
    this.#count = 0;
    if (count === 0 || (count === 1 && this.#showFirst)) return;
    this.#say(
      `${count} errors like '${this.#pattern.source}' occurred in last ${printDuration(this.#periodMs)}`,
    );
  }

  #say(text: string): void {
    const { log }: { log: Log } = this.#context;
    log[this.#level](text);
  }
}
