/** Bounds the errors of checks for storage and display. Their number and length are otherwise unlimited. */

/** More errors would only fill memory, pages and the API server's database. */
const ERRORS_MAX = 100;
const ERROR_LENGTH = 2000;
/** Total characters of all errors of a check. */
const LENGTH_MAX = 8 * 1024;

/** Keeps the first errors, shortened; the last entry counts the omitted ones. */
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

/** The beginning of a text, copied because a substring would keep the whole text in memory. */
export function shortText(text: string, most: number): string {
  if (text.length <= most) return text;
  return Buffer.from(`${text.slice(0, most - 1)}…`).toString('utf8');
}
