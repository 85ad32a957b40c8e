/** Links from the documentation's examples to the playground, with the example as its input. */
import { playgroundLink } from '../src/faces/playground/link.ts';

/** A code block on a page. */
export interface ShownExample {
  /** `sh`, `corefile` …, optionally followed by words. */
  readonly info: string;
  readonly text: string;
}

/** A link and its text. */
export interface ExampleLink {
  readonly text: string;
  readonly href: string;
}

/** The playground's default clients. */
const FOUR = ['glibc', 'musl', 'go', 'c-ares'];

/**
 * The links for a code block: one for its Corefile, or one for each command whose files exist.
 * @param base the playground's address
 * @param read returns the text of a file in the repository, or null if it does not exist
 */
export function exampleLinks(
  { info, text }: ShownExample,
  base: string,
  read: (path: string) => string | null,
): readonly ExampleLink[] {
  const [language] = info.trim().split(/\s+/);
  if (language === 'corefile')
    return [
      {
        text: 'Lint in the playground',
        href: playgroundLink(base, 'corefile', { corefile: text }),
      },
    ];
  if (language !== 'sh') return [];
  const found = commandsIn(text).map((words) => linkOf(words, base, read));
  return found.filter((link) => link !== null);
}

/** The words after `ndots` in each command. */
function commandsIn(text: string): readonly (readonly string[])[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
    .flatMap((line) => {
      const words = line.split(/\s+/);
      const at = words[0] === 'npx' ? 1 : 0;
      // The playground cannot run commands that use shell features.
      return words[at] === 'ndots' && !/[|<>$&;]/.test(line) ? [words.slice(at + 1)] : [];
    });
}

function linkOf(
  [verb, ...words]: readonly string[],
  base: string,
  read: (path: string) => string | null,
): ExampleLink | null {
  const [first, second] = words.filter((word, at) => !isOfOption(words, word, at));
  if (first === undefined) return null;
  switch (verb) {
    case 'trace':
      return traceLink(first, second, words, base, read);
    case 'lint': {
      const corefile = read(first);
      if (corefile === null || second !== undefined) return null;
      return {
        text: `Lint ${first} in the playground`,
        href: playgroundLink(base, 'corefile', { corefile }),
      };
    }
    case 'diff': {
      const [before, after] = [read(first), second === undefined ? null : read(second)];
      if (before === null || after === null) return null;
      return {
        text: 'Compare them in the playground',
        href: playgroundLink(base, 'diff', { before, after }),
      };
    }
  }
  return null;
}

function traceLink(
  name: string,
  second: string | undefined,
  words: readonly string[],
  base: string,
  read: (path: string) => string | null,
): ExampleLink | null {
  // The playground does not have the settings of a pod, a machine or another server.
  if (words.some((word) => /^(?:--from|--nsswitch|--cgo|--families)$/.test(word))) return null;
  const file = (option: string): string | null | undefined => {
    const path = valueOf(words, option);
    return path === undefined ? undefined : read(path);
  };
  const [resolv, answers] = [file('--resolv-conf'), file('--answers')];
  if (resolv === null || answers === null) return null;
  const client = valueOf(words, '--client');
  const type = second === 'A' || second === 'AAAA' ? second : undefined;
  const isPlain = words.includes('--plan');
  return {
    text: `Trace ${name} in the playground`,
    href: playgroundLink(base, 'lookup', {
      name,
      ...(resolv !== undefined && { resolv }),
      ...(answers === undefined ? isPlain && { answers: '' } : { answers }),
      ...(isPlain && { cluster: 'no' as const }),
      ...(client !== undefined && !FOUR.includes(client) && { clients: 'all' as const }),
      ...(type !== undefined && { type }),
    }),
  };
}

function valueOf(words: readonly string[], option: string): string | undefined {
  const at = words.indexOf(option);
  return at < 0 ? undefined : words[at + 1];
}

/** True for both an option and its value. `--plan` has no value. */
function isOfOption(words: readonly string[], word: string, at: number): boolean {
  if (word.startsWith('-') || word.startsWith('@')) return true;
  const before = words[at - 1] ?? '';
  return before.startsWith('-') && before !== '--plan';
}
