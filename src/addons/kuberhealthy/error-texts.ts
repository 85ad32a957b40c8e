/**
 * Limits the errors of checks for storage and display: their texts are foreign, of any number and
 * length.
 */

/** More and longer errors would only fill memory, pages and the API server’s database. */
const ERRORS_MAX = 100;
const ERROR_LENGTH = 2000;
/** Characters of all errors of one check. */
const LENGTH_MAX = 8 * 1024;

/** The first errors, shortened; the last text counts the others. */
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

/** The beginning of a text; a copy, for a piece of a text keeps the whole of it in memory. */
export function shortText(text: string, most: number): string {
  if (text.length <= most) return text;
  return Buffer.from(`${text.slice(0, most - 1)}…`).toString('utf8');
}
