import type { Clock } from './clock.ts';
import { sourceStack } from './stack.ts';
import { visible } from './visible.ts';

/** A log with one line per call, in CoreDNS's format: `[LEVEL] text`. */
export interface Log {
  /** @param text what makes it is called only while debug lines are logged */
  debug(text: string | (() => string)): void;
  info(text: string): void;
  warning(text: string): void;
  error(text: string): void;
  /**
   * A complete line, e.g. the query log's. One without a level is information. @param fields
   * further values, which only a structured log prints
   */
  raw(line: string, fields?: LogFields): void;
  /** True where fields are printed: each line is a JSON object. */
  readonly structured: boolean;
}

/** Named values of a line. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Prints a complete line, `[LEVEL] plugin/NAME: text`, in another format. */
export type LinePrinter = (line: string, fields?: LogFields) => string;

/** Prints a line as one JSON object, with the keys of Go's `slog`: time, level, msg, plugin. */
export function jsonLines(clock: Pick<Clock, 'wall'>): LinePrinter {
  return (line, fields) => {
    const [, level = 'INFO', plugin, text = ''] = LINE.exec(line)!;
    const object = {
      time: new Date(clock.wall()).toISOString(),
      level: level === 'WARNING' ? 'WARN' : level,
      msg: text,
      ...(plugin !== undefined && { plugin }),
      ...fields,
    };
    // The rest of the hidden characters, as JSON escapes them.
    return visible(JSON.stringify(object));
  };
}

const LINE = /^(?:\[(DEBUG|INFO|WARNING|ERROR|FATAL)\] )?(?:plugin\/([\w-]+): )?([^]*)$/;

/**
 * A log that passes complete lines (without line end) to `sink`. Debug lines are passed only while
 * `debugging()` is true. Texts may quote servers and objects: hidden characters are shown. `raw` is
 * passed unchanged, because the query log builds its line from parts that are escaped already.
 * @param print the format, if it is not text
 */
export function makeLog(
  sink: (line: string) => void,
  debugging: () => boolean = () => false,
  print: LinePrinter | null = null,
): Log {
  const write =
    print === null
      ? (line: string): void => sink(visible(line))
      : (line: string): void => sink(print(line));
  return {
    debug: (text) => {
      if (debugging()) write(`[DEBUG] ${textOf(text)}`);
    },
    info: (text) => write(`[INFO] ${text}`),
    warning: (text) => write(`[WARNING] ${text}`),
    error: (text) => write(`[ERROR] ${text}`),
    raw: print === null ? (line) => sink(line) : (line, fields) => sink(print(line, fields)),
    structured: print !== null,
  };
}

/** The same log with the plugin's name in each line: `[INFO] plugin/cache: text`. */
export function pluginLog(log: Log, plugin: string): Log {
  const prefix = `plugin/${plugin}: `;
  return {
    debug: (text) => log.debug(() => prefix + textOf(text)),
    info: (text) => log.info(prefix + text),
    warning: (text) => log.warning(prefix + text),
    error: (text) => log.error(prefix + text),
    raw: (line, fields) => log.raw(line, fields),
    structured: log.structured,
  };
}

function textOf(text: string | (() => string)): string {
  return typeof text === 'string' ? text : text();
}

/** The text of a bug for the log: with its stack, if there is one. */
export function bugText(error: unknown): string {
  return error instanceof Error ? sourceStack(error) : String(error);
}
