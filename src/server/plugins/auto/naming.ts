/** Maps file names in a directory to zones. */
import { compilePattern, PatternError, type Pattern } from '../../base/pattern.ts';
import type { Refuse } from '../../corefile/properties.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { foldName, parseNameOrNull, printName } from '../../wire/name.ts';

export interface ZoneNaming {
  readonly directory: string;
  readonly pattern: Pattern;
  /** `{1}` and `{name}` refer to the pattern's groups. */
  readonly template: string;
}

const PATTERN = String.raw`db\.(.*)`;
const TEMPLATE = '{1}';

/** Reads `DIR [REGEXP ORIGIN_TEMPLATE]`. */
export function readNaming(words: readonly Token[], refuse: Refuse): ZoneNaming {
  const [directory, source, template] = words;
  if (directory === undefined || words.length === 2 || words.length > 3)
    return refuse('Wrong argument count or unexpected line ending');
  if (source === undefined)
    return { directory: directory.text, pattern: compilePattern(PATTERN), template: TEMPLATE };
  try {
    const pattern = compilePattern(source.text);
    if (pattern.groupCount === 0) refuse('Need at least one sub expression', source.place);
    return { directory: directory.text, pattern, template: template!.text };
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return refuse(error.message, source.place, { hint: error.hint });
  }
}

/** Returns the zone for a file name, as an absolute lower-case name, or null if the file name does not match. */
export function zoneOf(file: string, { pattern, template }: ZoneNaming): string | null {
  const match = pattern.exec(file);
  if (match === null) return null;
  const origin = template.replaceAll(/\{([^{}]*)\}/g, (_, group: string) =>
    /^\d+$/.test(group) ? (match.groups[Number(group)] ?? '') : (match.named[group] ?? ''),
  );
  const zone = origin === '' ? null : parseNameOrNull(origin);
  return zone === null ? null : printName(foldName(zone));
}
