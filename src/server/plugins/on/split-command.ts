/** The words of a command line, as a shell would split them; nothing is expanded. */

/**
 * Splits at blanks. What stands in quotes is one word or a part of it; a backslash takes the next
 * letter as it is, within double quotes too. A word that begins with # and all behind it is left
 * out.
 * @returns null: a quote is not closed
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
