/** Messages quote what a person gave, and that may be a file of megabytes in one line. */

/** Longer than any path or DNS name, so the middle of such a word carries no information. */
const WORD_MAX = 600;
/** The most characters of such a word that are shown. */
const WORD_SHOWN = 120;
/** Longer than any message that contains a path or two. */
const LINE_MAX = 3000;
/** Half of a surrogate pair at the end. */
const HALF = /[\ud800-\udbff]$/;

/** The text with its longest words, and then its longest lines, cut: `xxxx… (2000000 characters)`. */
export function shortened(text: string): string {
  if (text.length <= WORD_MAX) return text;
  return text
    .split('\n')
    .map((line) => {
      const words = line.split(' ').map((word) => cut(word, WORD_MAX, WORD_SHOWN));
      return cut(words.join(' '), LINE_MAX, LINE_MAX);
    })
    .join('\n');
}

/** The line up to `most` characters, the last of them … where it is longer. */
export function clipped(line: string, most: number): string {
  if (line.length <= most) return line;
  return `${line.slice(0, most - 1).replace(HALF, '')}…`;
}

function cut(text: string, most: number, shown: number): string {
  if (text.length <= most) return text;
  const part = text.slice(0, shown).replace(HALF, '');
  return `${part}… (${text.length} characters)`;
}
