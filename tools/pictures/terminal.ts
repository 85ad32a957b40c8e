/** Draws a command's output as SVG, as it would appear in a terminal. */
import { escapeXml, monospace, type Palette } from './palette.ts';

const COLUMN = 7.83;
const ROW = 18;
const MARGIN = 16;

interface Run {
  readonly text: string;
  readonly codes: ReadonlySet<number>;
}

/** Draws a command and its output, which may contain colours (SGR codes). */
export function terminalSvg(command: string, output: string, palette: Palette): string {
  const lines = [`\u001B[1m$ ${command}\u001B[0m`, ...output.trimEnd().split('\n')];
  const runs = lines.map(runsOf);
  const columns = Math.max(
    ...runs.map((line) => line.reduce((sum, { text }) => sum + text.length, 0)),
  );
  const width = Math.ceil(columns * COLUMN + 2 * MARGIN);
  const height = lines.length * ROW + 2 * MARGIN;
  const rows = runs.flatMap((line, row) => rowSvg(line, MARGIN + 13 + row * ROW, palette));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(command)}</title>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${palette.background}" stroke="${palette.frame}"/>`,
    `<g font-family="${monospace}" font-size="13" fill="${palette.text}">`,
    ...rows,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Sets each run's position and width explicitly, so that columns are aligned in any font. */
function rowSvg(line: readonly Run[], y: number, palette: Palette): string[] {
  let column = 0;
  const found: string[] = [];
  for (const { text, codes } of line) {
    const start = column + text.length - text.trimStart().length;
    column += text.length;
    const shown = text.trim();
    if (shown === '') continue;
    const x = (MARGIN + start * COLUMN).toFixed(1);
    const size = (shown.length * COLUMN).toFixed(1);
    found.push(
      `<text x="${x}" y="${y}" textLength="${size}" lengthAdjust="spacingAndGlyphs" xml:space="preserve"${style(codes, palette)}>${escapeXml(shown)}</text>`,
    );
  }
  return found;
}

function style(codes: ReadonlySet<number>, palette: Palette): string {
  const colours: readonly (readonly [number, string])[] = [
    [31, palette.red],
    [32, palette.green],
    [33, palette.yellow],
    [34, palette.blue],
    [36, palette.blue],
    [2, palette.dim],
  ];
  const fill = colours.find(([code]) => codes.has(code))?.[1];
  return `${fill === undefined ? '' : ` fill="${fill}"`}${codes.has(1) ? ' font-weight="700"' : ''}`;
}

/** Splits a line where its SGR codes change. */
function runsOf(line: string): readonly Run[] {
  const [first = '', ...rest] = line.split('\u001B[');
  let codes: ReadonlySet<number> = new Set();
  const runs: Run[] = [{ text: first, codes }];
  for (const part of rest) {
    const end = part.indexOf('m');
    const added = part.slice(0, end).split(';').map(Number);
    codes = new Set(added.includes(0) ? [] : [...codes, ...added]);
    runs.push({ text: part.slice(end + 1), codes });
  }
  return runs;
}
