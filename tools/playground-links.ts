/** Links from the examples of a page to the playground, with the example as its input. */
import { playgroundLink } from '../src/faces/playground/link.ts';

/** A block of code of a page. */
export interface ShownExample {
  /** `sh`, `corefile` …, with words behind it. */
  readonly info: string;
  readonly text: string;
}

/** A link, and the words on it. */
export interface ExampleLink {
  readonly text: string;
  readonly href: string;
}

/** Clients that the playground compares without being told. */
const FOUR = ['glibc', 'musl', 'go', 'c-ares'];

/**
 * The links of a block: its Corefile, or each of its commands whose files are there.
 * @param base where the playground is
 * @param read the text of a file of the repository; null: there is none
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

/** The words behind `ndots`, of each command. */
function commandsIn(text: string): readonly (readonly string[])[] {
  return text
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => line.replace(/(?:^|\s)#.*$/, '').trim())
    .flatMap((line) => {
      const words = line.split(/\s+/);
      const at = words[0] === 'npx' ? 1 : 0;
      // Anything that a shell would act on is not an example of the playground.
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
  // Settings of a pod, of a machine or of another server are not there.
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

/** True for an option and for its value; `--plan` has none. */
function isOfOption(words: readonly string[], word: string, at: number): boolean {
  if (word.startsWith('-') || word.startsWith('@')) return true;
  const before = words[at - 1] ?? '';
  return before.startsWith('-') && before !== '--plan';
}
