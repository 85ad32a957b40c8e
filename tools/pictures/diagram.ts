/**
 * Draws a diagram described in text as SVG. Each line is one of:
 *
 * `title TEXT` · `size COLUMNS ROWS` · `group COLUMN ROW WIDTH HEIGHT TEXT` · `box ID COLUMN ROW WIDTH HEIGHT TEXT |
 * TEXT …` · `arrow ID ID [TEXT]` · `note COLUMN ROW TEXT` · `# comment`. A column is 10 pixels wide and a row is 10
 * pixels high.
 */
import { escapeXml, type Palette } from './palette.ts';

const UNIT = 10;
const LINE = 16;

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Draws the diagram in these colours. Throws an error that quotes the first invalid line. */
export function diagramSvg(source: string, palette: Palette): string {
  const boxes = new Map<string, Box>();
  const shapes: string[] = [];
  const arrows: string[] = [];
  let [title, width, height] = ['', 0, 0];
  for (const [index, line] of source.split('\n').entries()) {
    const [word = '', ...rest] = line.trim().split(/\s+/);
    if (word === '' || word === '#') continue;
    const numbers = (from: number, count: number): number[] =>
      rest.slice(from, from + count).map((each) => Number(each) * UNIT);
    const text = (from: number): string => rest.slice(from).join(' ');
    if (word === 'title') title = text(0);
    else if (word === 'size') [width = 0, height = 0] = numbers(0, 2);
    else if (word === 'note') {
      const [x = 0, y = 0] = numbers(0, 2);
      shapes.push(textSvg(x, y, text(2), palette.dim, 'start'));
    } else if (word === 'group' || word === 'box') {
      const from = word === 'box' ? 1 : 0;
      const [x = 0, y = 0, w = 0, h = 0] = numbers(from, 4);
      const box = { x, y, width: w, height: h };
      if (word === 'box') boxes.set(rest[0]!, box);
      shapes.push(
        ...(word === 'box' ? boxSvg(box, text(5), palette) : groupSvg(box, text(4), palette)),
      );
    } else if (word === 'arrow') {
      const [from, to] = [boxes.get(rest[0] ?? ''), boxes.get(rest[1] ?? '')];
      if (from === undefined || to === undefined)
        throw new Error(`line ${index + 1}: no such box: ${line}`);
      arrows.push(arrowSvg(from, to, text(2), palette));
    } else throw new Error(`line ${index + 1}: ${line}`);
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="${palette.blue}"/></marker></defs>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${palette.background}"/>`,
    `<g font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13">`,
    ...shapes,
    ...arrows,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function textSvg(
  x: number,
  y: number,
  text: string,
  fill: string,
  anchor: string,
  bold = false,
): string {
  const weight = bold ? ' font-weight="600"' : '';
  return `<text x="${x}" y="${y}" fill="${fill}" text-anchor="${anchor}"${weight}>${escapeXml(text)}</text>`;
}

/** A box with centred lines of text, the first of which is bold. */
function boxSvg({ x, y, width, height }: Box, text: string, palette: Palette): string[] {
  const lines = text.split('|').map((each) => each.trim());
  const first = y + height / 2 + 5 - ((lines.length - 1) * LINE) / 2;
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${palette.box}" stroke="${palette.frame}"/>`,
    ...lines.map((line, at) =>
      textSvg(
        x + width / 2,
        first + at * LINE,
        line,
        at === 0 ? palette.text : palette.dim,
        'middle',
        at === 0,
      ),
    ),
  ];
}

/** A dashed frame with its name at the top. */
const groupSvg = ({ x, y, width, height }: Box, text: string, palette: Palette): string[] => [
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" fill="none" stroke="${palette.dim}" stroke-dasharray="5 4"/>`,
  textSvg(x + 12, y + 19, text, palette.dim, 'start', true),
];

/** An arrow between the facing sides of two boxes, with text beside it. */
function arrowSvg(from: Box, to: Box, text: string, palette: Palette): string {
  const isSideways = to.x >= from.x + from.width || from.x >= to.x + to.width;
  const [start, end] = isSideways ? sides(from, to) : edges(from, to);
  const label = isSideways
    ? textSvg((start[0] + end[0]) / 2, Math.min(start[1], end[1]) - 6, text, palette.blue, 'middle')
    : textSvg(start[0] + 8, (start[1] + end[1]) / 2 + 4, text, palette.blue, 'start');
  return `<line x1="${start[0]}" y1="${start[1]}" x2="${end[0]}" y2="${end[1]}" stroke="${palette.blue}" stroke-width="1.5" marker-end="url(#tip)"/>${text === '' ? '' : label}`;
}

type Point = readonly [x: number, y: number];

/** The ends of an arrow between boxes that are side by side, in the middle of their common height. */
function sides(from: Box, to: Box): readonly [Point, Point] {
  const y = middle(from.y, from.height, to.y, to.height);
  return to.x >= from.x + from.width
    ? [
        [from.x + from.width, y],
        [to.x, y],
      ]
    : [
        [from.x, y],
        [to.x + to.width, y],
      ];
}

/** The ends of an arrow between boxes that are one above the other, in the middle of their common width. */
function edges(from: Box, to: Box): readonly [Point, Point] {
  const x = middle(from.x, from.width, to.x, to.width);
  return to.y >= from.y + from.height
    ? [
        [x, from.y + from.height],
        [x, to.y],
      ]
    : [
        [x, from.y],
        [x, to.y + to.height],
      ];
}

const middle = (a: number, aSize: number, b: number, bSize: number): number =>
  (Math.max(a, b) + Math.min(a + aSize, b + bSize)) / 2;
