/** Generates a command's `--help` text and manual page from its usage. */
import type { Option, Usage } from './option.ts';

/** Maximum width; longer lines are hard to read. */
const WIDEST = 100;
const NARROWEST = 40;
/** On narrower terminals, an option's description is printed below it. */
const SIDE_BY_SIDE = 90;
const BELOW = ' '.repeat(10);

/**
 * @param program its name as invoked: `ndots` or `kubectl ndots`
 * @param terminal the width
 */
export function helpText(
  program: string,
  verb: string,
  summary: string,
  usage: Usage,
  terminal: number = WIDEST,
): string {
  const columns = Math.min(WIDEST, Math.max(NARROWEST, terminal));
  const call = `${program} ${verb}`;
  const lines = [...filled(`${program} ${verb}: ${summary}`, '', columns), ''];
  const examples = usage.examples.map(([words, what]) => [`${call} ${words}`.trimEnd(), what]);
  const room = Math.max(0, ...examples.map(([words = '']) => words.length));
  const sideBySide = columns >= SIDE_BY_SIDE;
  const besideExamples =
    sideBySide && examples.every(([, what = '']) => room + what.length + 5 <= columns);
  for (const [words = '', what = ''] of examples)
    if (besideExamples) lines.push(`  ${words.padEnd(room)}   ${what}`.trimEnd());
    else lines.push(...typed(words, columns), ...(what === '' ? [] : filled(what, BELOW, columns)));
  if (examples.length > 0) lines.push('');
  lines.push(...filled(`Usage: ${synopsis(call, usage)}`, '', columns));
  const brief = (title: string): boolean => usage.brief?.includes(title) === true;
  const width = Math.max(
    0,
    ...[...groups(usage)]
      .filter(([title]) => !brief(title))
      .flatMap(([, options]) => options.map((option) => left(option).length)),
  );
  for (const [title, options] of groups(usage)) {
    lines.push('', title);
    if (brief(title)) {
      const names = options.flatMap((option) => spelled(option).slice(0, 1));
      lines.push(...filled(names.join(' '), '  ', columns));
    } else if (sideBySide) lines.push(...listed(options, width, columns));
    else
      for (const option of options)
        lines.push(left(option), ...filled(option.help, BELOW, columns));
  }
  for (const note of usage.notes) lines.push('', ...paragraph(note, columns));
  return `${lines.join('\n')}\n`;
}

function synopsis(call: string, { synopsis: words, options }: Usage): string {
  const parts = [call, words, Object.keys(options).length > 0 ? '[options]' : ''];
  return parts.filter((part) => part !== '').join(' ');
}

/** Options by heading, in table order. */
function groups({ options }: Usage): ReadonlyMap<string, readonly Option[]> {
  return Map.groupBy(Object.values(options), ({ group }) => (group === '' ? 'Options' : group));
}

/** All spellings, shortest first, with the value after the last one. */
function spelled({ names, value, kind }: Option): readonly string[] {
  if (value === null) return names;
  const last = names.length - 1;
  return names.map((name, index) => {
    const dig = name.startsWith('+');
    if (!dig && index < last) return name;
    const shown = `${dig ? '=' : ' '}${value.placeholder}`;
    return `${name}${kind === 'maybe' ? `[${shown}]` : shown}`;
  });
}

/** An option's names and value, with long names aligned. */
function left(option: Option): string {
  const text = spelled(option).join(', ');
  return text.startsWith('--') ? `      ${text}` : `  ${text}`;
}

function listed(options: readonly Option[], width: number, columns: number): string[] {
  return options.flatMap((option) => {
    const [first = '', ...more] = filled(option.help, ' '.repeat(width + 2), columns);
    return [`${left(option).padEnd(width)}${first.slice(width)}`, ...more];
  });
}

/** Paragraphs with indented lines are preformatted. */
function paragraph(text: string, columns: number): string[] {
  return /^ /m.test(text) ? text.split('\n') : filled(text, '', columns);
}

function filled(text: string, indent: string, columns: number): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    const next = line === indent ? `${indent}${word}` : `${line} ${word}`;
    if (next.length > columns && line !== indent) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = next;
  }
  lines.push(line);
  return lines;
}

/** Uses backslashes to break a command line between words. Quoted text stays on one line. */
function typed(command: string, columns: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of command.match(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g) ?? []) {
    // Reserves two columns for the continuation mark.
    if (line !== '' && `${line} ${word}`.length > columns - 2) {
      lines.push(`${line} \\`);
      line = `      ${word}`;
    } else line = line === '' ? `  ${word}` : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Generates a section 1 manual page in man(7) format. */
export function manualPage(parts: {
  readonly verb: string;
  readonly summary: string;
  readonly usage: Usage;
  readonly version: string;
  /** Release date: 2026-11-21. */
  readonly date: string;
}): string {
  const { verb, summary, usage, version, date } = parts;
  const lines = [
    `.TH NDOTS-${verb.toUpperCase()} 1 ${date} "ndots ${version}" "ndots"`,
    '.SH NAME',
    `ndots-${verb} \\- ${roff(summary)}`,
    '.SH SYNOPSIS',
    `.B ndots ${verb}`,
    roff(synopsis('', usage).trim()),
  ];
  if (usage.examples.length > 0) lines.push('.SH EXAMPLES');
  for (const [words, what] of usage.examples)
    lines.push('.TP', `.B ${roff(`ndots ${verb} ${words}`.trimEnd())}`, roff(what));
  if (Object.keys(usage.options).length > 0) lines.push('.SH OPTIONS');
  for (const [title, options] of groups(usage)) {
    if (title !== 'Options') lines.push(`.SS ${roff(title)}`);
    for (const option of options) lines.push('.TP', roffNames(option), roff(option.help));
  }
  if (usage.notes.length > 0) lines.push('.SH NOTES');
  usage.notes.forEach((note, index) => {
    if (index > 0) lines.push('.PP');
    if (/^ /m.test(note)) lines.push('.nf', roff(note), '.fi');
    else lines.push(roff(note));
  });
  lines.push('.SH SEE ALSO', '.BR ndots (1)');
  return `${lines.join('\n')}\n`;
}

function roffNames({ names, value, kind }: Option): string {
  const bold = names.map((name) => `\\fB${roff(name)}\\fR`).join(', ');
  if (value === null) return bold;
  const dig = names[0]?.startsWith('+') === true;
  const shown = `${dig ? '=' : ' '}\\fI${roff(value.placeholder)}\\fR`;
  return `${bold}${kind === 'maybe' ? `[${shown}]` : shown}`;
}

/** Escapes text for roff, including backslashes, leading dots and quotes, dashes, and non-ASCII characters. */
export function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(
      // eslint-disable-next-line no-control-regex -- matches everything outside ASCII
      /[^\u0000-\u007f]/gu,
      (letter) =>
        `\\[u${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}
