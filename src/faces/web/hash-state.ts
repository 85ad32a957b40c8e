/**
 * The state of a page in the part of its address after `#`, which browsers do not send to the
 * server: `#diff?before=…&after=…`.
 */

/** A page and its parameters. */
export interface HashState {
  /** Empty: the address names none. */
  readonly page: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Longer addresses are cut by some programs that pass them on, in characters. */
export const HASH_MAX = 32_000;

/** Reads the part of an address after `#`. */
export function parseHash(hash: string): HashState {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?');
  const page = mark < 0 ? text : text.slice(0, mark);
  const parameters = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  return { page, parameters: new Map(parameters) };
}

/** The part of an address after `#`, with it. */
export function printHash({ page, parameters }: HashState): string {
  const query = new URLSearchParams([...parameters]).toString();
  return `#${page}${query === '' ? '' : `?${query}`}`;
}
