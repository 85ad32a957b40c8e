/** Shortens user input quoted in messages, because it may be a megabyte-sized file on a single line. */

/** Longer than any path or DNS name. The middle of an even longer word is not informative. */
const WORD_MAX = 600;
/** Number of characters shown of such a word. */
const WORD_SHOWN = 120;
/** Longer than any message that contains a path or two. */
const LINE_MAX = 3000;
/** The first half of a surrogate pair at the end of the text. */
const HALF = /[\ud800-\udbff]$/;

/** Cuts overlong words and then overlong lines: `xxxx… (2000000 characters)`. */
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

/** Cuts the line to `most` characters, the last of which then becomes an ellipsis. */
export function clipped(line: string, most: number): string {
  if (line.length <= most) return line;
  return `${line.slice(0, most - 1).replace(HALF, '')}…`;
}

function cut(text: string, most: number, shown: number): string {
  if (text.length <= most) return text;
  const part = text.slice(0, shown).replace(HALF, '');
  return `${part}… (${text.length} characters)`;
}
