/** Words of command lines that people copy. */

/** A word for POSIX shells; quotes are left out where they are not needed. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
