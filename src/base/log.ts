import { sourceStack } from './stack.ts';

/** One line per call, in CoreDNS's shape: `[LEVEL] text`. */
export interface Log {
  debug(text: string): void;
  info(text: string): void;
  warning(text: string): void;
  error(text: string): void;
  /** A line without a level of its own, e.g. the query log's. */
  raw(line: string): void;
}

/** A log that hands finished lines (no line end) to `sink`. Debug lines pass only while `debugging()` holds. */
export function makeLog(sink: (line: string) => void, debugging: () => boolean = () => false): Log {
  return {
    debug: (text) => {
      if (debugging()) sink(`[DEBUG] ${text}`);
    },
    info: (text) => sink(`[INFO] ${text}`),
    warning: (text) => sink(`[WARNING] ${text}`),
    error: (text) => sink(`[ERROR] ${text}`),
    raw: sink,
  };
}

/** The same log, each line under the plugin's name: `[INFO] plugin/cache: text`. */
export function pluginLog(log: Log, plugin: string): Log {
  const prefix = `plugin/${plugin}: `;
  return {
    debug: (text) => log.debug(prefix + text),
    info: (text) => log.info(prefix + text),
    warning: (text) => log.warning(prefix + text),
    error: (text) => log.error(prefix + text),
    raw: (line) => log.raw(line),
  };
}

/** What a bug has thrown, as text for the log: with its stack, where it has one. */
export function bugText(error: unknown): string {
  return error instanceof Error ? sourceStack(error) : String(error);
}
