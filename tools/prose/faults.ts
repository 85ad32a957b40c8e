/** Finds the faults in a file, which are constructions that are not plain English and pages that break layout rules. */
import { pageFaults, type Opening } from './page-rules.ts';
import { markdownPassages, sourcePassages } from './passages.ts';
import { longSentences, proseRules } from './rules.ts';

/** A fault: its position, the words, and a plain alternative. */
export interface ProseFault {
  readonly file: string;
  readonly line: number;
  readonly rule: string;
  readonly text: string;
  readonly write: string;
}

export function faultsOf(file: string, content: string, opening: Opening = 'free'): ProseFault[] {
  const isPage = file.endsWith('.md');
  const passages = isPage
    ? markdownPassages(withoutGenerated(file, content))
    : sourcePassages(content, file.endsWith('.test.ts'));
  const found: ProseFault[] = [];
  for (const { kind, text, lineAt } of passages) {
    for (const { name, pattern, write, only, unless } of proseRules) {
      if (only !== undefined && !only.includes(kind)) continue;
      for (const match of text.matchAll(pattern)) {
        const around = text.slice(
          Math.max(0, match.index - 40),
          match.index + match[0].length + 40,
        );
        if (unless?.test(match[0]) === true || unless?.test(around) === true) continue;
        found.push({
          file,
          line: lineAt(match.index),
          rule: name,
          text: match[0].slice(0, 80),
          write,
        });
      }
    }
    if (kind === 'markdown' || kind === 'docstring' || kind === 'comment')
      for (const [offset, count] of longSentences(text))
        found.push({
          file,
          line: lineAt(offset),
          rule: 'long sentence',
          text: `${text.slice(offset, offset + 50).trim()}…`,
          write: `${count} words; split it`,
        });
  }
  if (isPage)
    for (const { line, rule, text } of pageFaults(withoutGenerated(file, content), opening))
      found.push({ file, line, rule, text, write: '' });
  return found.toSorted((a, b) => a.line - b.line);
}

/** The syntax block and list on plugin pages. They are generated from the code, so only the code is checked. */
const generated = /(?<=^## Syntax\n\n)```\n[^]*?^```$(?:\n\n(?:- .*(?:\n|$)| +- .*(?:\n|$))+)?/m;

/** Replaces the generated part with blanks, so that line numbers do not change. */
const withoutGenerated = (file: string, content: string): string =>
  isPluginPage(file)
    ? content.replace(generated, (part) => part.replaceAll(/[^\n]+/g, ''))
    : content;

const isPluginPage = (file: string): boolean => file.startsWith('src/server/plugins/');

/** Changes a page's text, except for the generated part. */
export function changeText(
  file: string,
  content: string,
  change: (text: string) => string,
): string {
  const part = isPluginPage(file) ? (generated.exec(content)?.[0] ?? '') : '';
  return part === ''
    ? change(content)
    : change(content.replace(part, () => `<!-- part -->`)).replace('<!-- part -->', () => part);
}
