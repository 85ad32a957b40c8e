/** Formats counts with their nouns. */

/** `1 query`, `2 queries`. */
export function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
