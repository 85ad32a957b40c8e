/**
 * Makes foreign text safe for a terminal, whose control characters could change its title,
 * overwrite the screen or inject input.
 */

/** The text with control characters shown, except line ends and tabs. */
export function visible(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, shown);
}

/** The same for a text that must stay within one line of a log. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\n\t]+/g, ' '));
}

/**
 * The same for a text that contains our own colours and may return to the beginning of its line.
 */
export function harmless(text: string): string {
  return text.replace(/\p{Cc}(?:\[\d{0,3}m)?/gu, (found) => {
    const first = found.charAt(0);
    const stays = first === '\u001b' ? found.length > 1 : '\n\t\r'.includes(first);
    return stays ? found : `${shown(first)}${found.slice(1)}`;
  });
}

function shown(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
}
