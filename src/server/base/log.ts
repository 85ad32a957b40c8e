import type { Clock } from './clock.ts';
import { sourceStack } from './stack.ts';
import { visible } from './visible.ts';

/** A log with one line per call, in CoreDNS's format: `[LEVEL] text`. */
export interface Log {
  /** @param text the text, or a function that is called only while debug lines are logged */
  debug(text: string | (() => string)): void;
  info(text: string): void;
  warning(text: string): void;
  error(text: string): void;
  /**
   * Logs a complete line, e.g. from the query log. A line without a level counts as INFO.
   * @param fields additional values, printed only in structured logs
   */
  raw(line: string, fields?: LogFields): void;
  /** True if fields are printed, because each line is a JSON object. */
  readonly structured: boolean;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** Prints a complete line, `[LEVEL] plugin/NAME: text`, in a different format. */
export type LinePrinter = (line: string, fields?: LogFields) => string;

/** Prints lines as JSON objects with the same keys as Go's `slog`: time, level, msg and plugin. */
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
    // Escape the remaining hidden characters as JSON does.
    return visible(JSON.stringify(object));
  };
}

const LINE = /^(?:\[(DEBUG|INFO|WARNING|ERROR|FATAL)\] )?(?:plugin\/([\w-]+): )?([^]*)$/;

/**
 * Creates a log that passes complete lines (without a line ending) to `sink`. Debug lines are passed only while
 * `debugging()` is true. Texts may quote servers and objects, so hidden characters are made visible. `raw` passes lines
 * unchanged, because the query log has already escaped its parts.
 * @param print output format; text by default
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

/** Returns the same log, but with the plugin's name in each line: `[INFO] plugin/cache: text`. */
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

/** Returns the text to log for a bug, including the stack if there is one. */
export function bugText(error: unknown): string {
  return error instanceof Error ? sourceStack(error) : String(error);
}
