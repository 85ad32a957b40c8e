/**
 * Makes untrusted text safe to print. Control characters could change a terminal's title, overwrite the screen or
 * inject input. Bidirectional overrides and zero-width characters can disguise a line.
 */

/**
 * Characters that are invisible in text: controls (C0, DEL and C1), format characters (bidirectional, zero width, soft
 * hyphen and tags), line and paragraph separators, unpaired surrogates, variation selectors and fillers.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;

/** Makes hidden characters visible, except for line endings and tabs. */
export function visible(text: string): string {
  return text.replace(HIDDEN, escaped);
}

/** Does the same for text that must stay on a single line. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\n\t]+/g, ' '));
}

/**
 * Escapes a character as in JSON, so that a JSON document remains equivalent. The result is `\u001b`, or a pair of
 * escapes beyond U+FFFF.
 */
function escaped(character: string): string {
  let text = '';
  for (let i = 0; i < character.length; i++)
    text += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return text;
}
