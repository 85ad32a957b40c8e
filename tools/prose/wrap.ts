/** Rewraps those paragraphs on a page that have a line over 120 columns. */
import { LINE_COLUMNS } from './page-rules.ts';

const FILL_COLUMNS = LINE_COLUMNS - 2;

/** Leaves tables, code and headings unchanged. */
export function wrapPage(page: string): string {
  const out: string[] = [];
  let open: string[] = [];
  let fence = '';
  const close = (): void => {
    out.push(...(open.some((line) => line.length > LINE_COLUMNS) ? filled(open) : open));
    open = [];
  };
  for (const line of page.split('\n')) {
    const mark = /^ *(```+|~~~+)/.exec(line)?.[1];
    const isFence = mark !== undefined && (fence === '' || mark.startsWith(fence));
    if (isFence || fence !== '' || /^\s*$|^[#|<>]/.test(line)) {
      close();
      if (isFence) fence = fence === '' ? mark : '';
      out.push(line);
    } else {
      if (/^\s*(?:[-*+]|\d+\.) /.test(line)) close();
      open.push(line);
    }
  }
  close();
  return out.join('\n');
}

/** Fills a paragraph. Code and link text are not separated from their markup. */
function filled(lines: readonly string[]): string[] {
  const [first = ''] = lines;
  const bullet = /^\s*(?:[-*+] |\d+\. )?/.exec(first)![0];
  const hang = ' '.repeat(bullet.length);
  const text = lines.map((line) => line.trim()).join(' ');
  const words = text.slice(bullet.trim() === '' ? 0 : bullet.trim().length).trim();
  const parts = words.match(/(?:`[^`]*`|\]\([^)]*\)|\S)+/g) ?? [];
  const out: string[] = [];
  let line = bullet;
  let isEmpty = true;
  for (const part of parts) {
    // A line must not begin with a list or heading mark.
    const isMark = /^(?:[-+*#>|]+|\d+\.)$/.test(part);
    if (!isEmpty && !isMark && line.length + 1 + part.length > FILL_COLUMNS) {
      out.push(line);
      line = hang;
      isEmpty = true;
    }
    line += isEmpty ? part : ` ${part}`;
    isEmpty = false;
  }
  return [...out, line];
}
