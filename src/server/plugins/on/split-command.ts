/** Splits a command line into words as a shell would, without expansion. */

/**
 * Splits at blanks. Quotes enclose a word or part of it, and a backslash escapes the next character, even within double
 * quotes. A word that starts with # ends the command.
 * @returns null if a quote is not closed
 */
export function splitCommand(text: string): string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let at = 0; at < text.length; at++) {
    const letter = text[at]!;
    if (quote !== '') {
      if (letter === quote) quote = '';
      else if (letter === '\\' && quote === '"') word += text[++at] ?? '';
      else word += letter;
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word ??= '';
    } else if (letter === '\\') word = (word ?? '') + (text[++at] ?? '');
    else if (letter === ' ' || letter === '\t' || letter === '\n') {
      if (word !== null) words.push(word);
      word = null;
    } else if (letter === '#' && word === null) return words;
    else word = (word ?? '') + letter;
  }
  if (quote !== '') return null;
  if (word !== null) words.push(word);
  return words;
}
