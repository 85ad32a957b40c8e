/** Messages quote what a person gave, and that may be a file of megabytes in one line. */

/** Longer than a path or a name of DNS: such a word says nothing by its middle. */
const WORD_MAX = 600;
/** So much of such a word is shown, of its beginning. */
const WORD_SHOWN = 120;
/** Longer than any message, with a path or two in it. */
const LINE_MAX = 3000;

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

function cut(text: string, most: number, shown: number): string {
  if (text.length <= most) return text;
  // Half of a character is none.
  const part = text.slice(0, shown).replace(/[\ud800-\udbff]$/, '');
  return `${part}… (${text.length} characters)`;
}
