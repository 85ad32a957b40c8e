/** An image's colours, for light or dark pages. */

export interface Palette {
  readonly background: string;
  readonly frame: string;
  readonly text: string;
  readonly dim: string;
  readonly red: string;
  readonly green: string;
  readonly yellow: string;
  readonly blue: string;
  readonly box: string;
}

/** Text has a contrast of at least 4.5 with its background (WCAG 2.2, 1.4.3). */
export const palettes: Readonly<Record<'light' | 'dark', Palette>> = {
  light: {
    background: '#ffffff',
    frame: '#c6cdd5',
    text: '#1f2328',
    dim: '#59636e',
    red: '#b3261e',
    green: '#116329',
    yellow: '#7d4e00',
    blue: '#0550ae',
    box: '#eef2f6',
  },
  dark: {
    background: '#0d1117',
    frame: '#3d444d',
    text: '#e6edf3',
    dim: '#9198a1',
    red: '#ff7b72',
    green: '#56d364',
    yellow: '#e3b341',
    blue: '#79c0ff',
    box: '#1b222c',
  },
};

export const escapeXml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** Widely available fonts. The widths below apply to all of them. */
export const monospace =
  "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
