/** Limits the number and length of check errors, which checkers do not, before they are stored or displayed. */

/** More errors would only fill up memory, pages and the API server's database. */
const ERRORS_MAX = 100;
const ERROR_LENGTH = 2000;
/** Total characters of all errors of a check. */
const LENGTH_MAX = 8 * 1024;

/** Keeps the first errors, shortened, and adds an entry that says how many were omitted. */
export function boundedErrors(errors: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let left = LENGTH_MAX;
  for (const error of errors) {
    const short = shortText(error, ERROR_LENGTH);
    left -= short.length;
    if (kept.length === ERRORS_MAX || left < 0) break;
    kept.push(short);
  }
  const more = errors.length - kept.length;
  return more === 0 ? kept : [...kept, `and ${more} more errors`];
}

/** Shortens a text. The result is a copy, because a substring would keep the whole text in memory. */
export function shortText(text: string, most: number): string {
  if (text.length <= most) return text;
  return Buffer.from(`${text.slice(0, most - 1)}…`).toString('utf8');
}
