import { sourceStack } from './stack.ts';
import { visible } from './visible.ts';

/** A log with one line per call, in CoreDNS's format: `[LEVEL] text`. */
export interface Log {
  /** @param text what makes it is called only while debug lines are logged */
  debug(text: string | (() => string)): void;
  info(text: string): void;
  warning(text: string): void;
  error(text: string): void;
  /** A line without a level of its own, e.g. the query log's. */
  raw(line: string): void;
}

/**
 * A log that passes complete lines (without line end) to `sink`. Debug lines are passed only while
 * `debugging()` is true. Texts may quote servers and objects: hidden characters are shown. `raw` is
 * passed unchanged, because the query log builds its line from parts that are escaped already.
 */
export function makeLog(sink: (line: string) => void, debugging: () => boolean = () => false): Log {
  return {
    debug: (text) => {
      if (debugging()) sink(visible(`[DEBUG] ${textOf(text)}`));
    },
    info: (text) => sink(visible(`[INFO] ${text}`)),
    warning: (text) => sink(visible(`[WARNING] ${text}`)),
    error: (text) => sink(visible(`[ERROR] ${text}`)),
    raw: sink,
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
    raw: (line) => log.raw(line),
  };
}

function textOf(text: string | (() => string)): string {
  return typeof text === 'string' ? text : text();
}

/** The text for the log of what a bug has thrown: with its stack, if there is one. */
export function bugText(error: unknown): string {
  return error instanceof Error ? sourceStack(error) : String(error);
}
