/**
 * Stores a page's state in its address after `#`, which browsers do not send to the server: `#diff?before=…&after=…`.
 */

export interface HashState {
  /** Empty: the address does not name a page. */
  readonly page: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Characters. Some programs truncate longer addresses. */
export const HASH_MAX = 32_000;

/** Parses the part of an address after `#`. */
export function parseHash(hash: string): HashState {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?');
  const page = mark < 0 ? text : text.slice(0, mark);
  const parameters = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  return { page, parameters: new Map(parameters) };
}

/** Formats the part of an address from `#` on. */
export function printHash({ page, parameters }: HashState): string {
  const query = new URLSearchParams([...parameters]).toString();
  return `#${page}${query === '' ? '' : `?${query}`}`;
}
