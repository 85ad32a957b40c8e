/** Parses a Dockerfile. */
import { dirname } from 'node:path';

export interface Instruction {
  readonly line: number;
  /** The instruction's name in upper case: `COPY`. */
  readonly name: string;
  /** `--from=build` → `{ from: 'build' }`. */
  readonly flags: Readonly<Record<string, string>>;
  /** The rest of the line, with continuation lines joined. */
  readonly text: string;
  /** The step's words, or the elements of its JSON form. */
  readonly words: readonly string[];
}

/** A stage, which is everything from one FROM to the next. */
export interface Stage {
  readonly base: string;
  /** The platform in FROM, such as `$BUILDPLATFORM`, or null for the image's platform. */
  readonly platform: string | null;
  readonly name: string;
  readonly steps: readonly Instruction[];
}

/**
 * Parses a Dockerfile into its stages. Heredocs, escapes, and variables other than the platform's are not supported.
 */
export function parseDockerfile(text: string): readonly Stage[] {
  const stages: (Stage & { steps: Instruction[] })[] = [];
  /** Arguments before the first stage, which FROM can use. */
  const defaults = new Map<string, string>();
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1;
    let whole = lines[at]!.trim();
    if (whole === '' || whole.startsWith('#')) continue;
    while (whole.endsWith('\\')) whole = `${whole.slice(0, -1)}${lines[++at]!.trim()}`;
    const [name = '', ...rest] = whole.split(/\s+/);
    const flags = rest.filter((word) => word.startsWith('--'));
    const plain = rest.filter((word) => !word.startsWith('--'));
    const json = plain.join(' ').startsWith('[');
    const step: Instruction = {
      line,
      name: name.toUpperCase(),
      flags: Object.fromEntries(flags.map((flag) => flag.slice(2).split('='))) as Record<
        string,
        string
      >,
      text: whole.slice(name.length).trim(),
      words: json ? (JSON.parse(plain.join(' ')) as string[]) : plain,
    };
    if (step.name === 'FROM') {
      const [named = '', , as = String(stages.length)] = step.words;
      const base = named.replace(/^\$\{(\w+)\}$/, (_, name: string) => defaults.get(name) ?? '');
      stages.push({ base, platform: step.flags['platform'] ?? null, name: as, steps: [] });
    } else if (stages.length > 0) stages.at(-1)!.steps.push(step);
    else if (step.name === 'ARG') defaults.set(...pairOf(step.text));
  }
  return stages;
}

function pairOf(text: string): [string, string] {
  const [name = '', ...value] = text.split('=');
  return [name, value.join('=')];
}

/** The variables set by an ENV step, which may have several on a line. Values may be quoted. */
export function variablesOf({ text }: Instruction): Readonly<Record<string, string>> {
  const pairs = text.matchAll(/(\w+)=(?:"([^"]*)"|(\S*))/g);
  return Object.fromEntries(
    [...pairs].map(([, name = '', quoted, plain]) => [name, quoted ?? plain ?? '']),
  );
}

/** COPY's target, which is either a path in the directory `to` or `to` itself. */
export interface Copied {
  readonly from: readonly string[];
  readonly to: string;
  readonly intoDirectory: boolean;
}

/**
 * Interprets COPY's arguments as Docker does. A directory's contents are copied to the target, and a file is copied
 * into a target that ends with `/`.
 */
export function copied({ words }: Instruction, workdir: string): Copied {
  const from = words.slice(0, -1);
  const target = words.at(-1)!;
  const to = target.startsWith('/') ? target : `${workdir}/${target}`.replace(/\/\.?\/?$/, '/');
  return { from, to, intoDirectory: from.length > 1 || target.endsWith('/') };
}

/** A target's parent, which Docker creates if necessary. */
export const parentOf = ({ to, intoDirectory }: Copied): string =>
  intoDirectory ? to : dirname(to);
