/**
 * Styles in a full-screen view. Cells store style numbers, which are turned into escape sequences here, using as many
 * colours as the terminal supports.
 */

/** The number of colours a terminal supports: 0, the 16 of ECMA-48, or the xterm palette. */
export type ColourDepth = 'none' | 16 | 256;

/**
 * All styles as SGR parameters for each colour depth. Without colours, the words carry the meaning and only bold, faint
 * and underlined text remains.
 */
const table = {
  plain: { none: '', 16: '', 256: '' },
  dim: { none: '2', 16: '2', 256: '38;5;245' },
  strong: { none: '1', 16: '1', 256: '1' },
  good: { none: '', 16: '32', 256: '38;5;71' },
  warn: { none: '1', 16: '33', 256: '38;5;179' },
  bad: { none: '1', 16: '1;31', 256: '1;38;5;203' },
  accent: { none: '1', 16: '36', 256: '38;5;74' },
  title: { none: '1', 16: '1;36', 256: '1;38;5;74' },
  heading: { none: '4', 16: '1', 256: '1;38;5;250' },
  bar: { none: '7', 16: '30;46', 256: '38;5;16;48;5;74' },
} as const;

export type StyleName = keyof typeof table;

const names = Object.keys(table) as StyleName[];

export const STYLE: Readonly<Record<StyleName, number>> = Object.fromEntries(
  names.map((name, at) => [name, at]),
) as Record<StyleName, number>;

/** Added to a style to show the row under the cursor in reverse video. */
export const SELECTED = 0x80;

/** The escape sequences of all styles, by number. */
export function styleSequences(depth: ColourDepth): readonly string[] {
  const sequences: string[] = [];
  names.forEach((name, at) => {
    const sgr = table[name][depth];
    // Faint text is unreadable in reverse video, so the selection has no colour.
    sequences[at] = sgr === '' ? '\u001b[0m' : `\u001b[0;${sgr}m`;
    sequences[at | SELECTED] = name === 'bad' && depth !== 'none' ? '\u001b[0;1;7m' : '\u001b[0;7m';
  });
  return sequences;
}

/**
 * Determines colour support from the environment. `NO_COLOR` (no-color.org) and `TERM=dumb` mean none, while
 * `COLORTERM` or a `TERM` with 256color means 256.
 */
export function colourDepth(env: Readonly<Record<string, string | undefined>>): ColourDepth {
  const { NO_COLOR, TERM = '', COLORTERM } = env;
  if (NO_COLOR || TERM === 'dumb' || TERM.startsWith('vt')) return 'none';
  if (COLORTERM || /256|kitty|alacritty|ghostty|direct/.test(TERM)) return 256;
  return 16;
}
