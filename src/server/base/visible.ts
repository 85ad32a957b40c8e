/**
 * Makes foreign text safe to print. Control characters could change a terminal's title, overwrite
 * the screen or inject input. Bidirectional overrides and characters without a width make a line
 * read as something that it is not.
 */

/**
 * The characters that no line of text shows: controls (C0, DEL, C1), formats (bidirectional, zero
 * width, soft hyphen, tags), line and paragraph separators, unpaired surrogates, variation selectors and fillers.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** The text with its hidden characters shown, except line ends and tabs. */
export function visible(text: string): string {
  return text.replace(HIDDEN, escaped);
}

/** The same for a text that must stay within one line. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\n\t]+/g, ' '));
}

/**
 * A character as JSON escapes it, so that a JSON document remains the same document:
 * `\u001b`, and two of these beyond U+FFFF.
 */
function escaped(character: string): string {
  let text = '';
  for (let i = 0; i < character.length; i++)
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return text;
}
