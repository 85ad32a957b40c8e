/** Texts of other people's on a terminal, which obeys what control characters say: titles, other windows' contents, keys typed back. */

/** The text with its control characters shown, but for ends of lines and tabs. */
export function visible(text: string): string {
  return text.replace(/(?![\n\t])\p{Cc}/gu, shown);
}

/** The same for a text that is to stand in one line of a log. */
export function oneLine(text: string): string {
  return visible(text.replace(/[\n\t]+/g, ' '));
}

/** The same for a text that has colours of ours, and may return to the begin of its line. */
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
