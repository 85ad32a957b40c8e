/** Characters that are not allowed in host names, in a name as `printName` prints it. */

/** `\010` and `\"`. */
const ESCAPE = /\\(\d{3}|.)/gs;
const STRAY = /[^a-z0-9._*-]/;
/** `${DB_HOST}`, `{{ .Values.host }}`, `$(DB_HOST)`, `<host>`, `%s`. */
const TEMPLATE = /[${}<>%]/;
const NAMES: ReadonlyMap<string, string> = new Map([
  ['\n', 'a line feed (byte 0x0a)'],
  ['\r', 'a carriage return (byte 0x0d)'],
  ['\t', 'a tab (byte 0x09)'],
  [' ', 'a space (byte 0x20)'],
  ['"', 'a double quote (")'],
  ["'", "a single quote (')"],
  [',', 'a comma'],
  [';', 'a semicolon'],
  ['\0', 'a zero byte'],
]);
/** The first byte value outside ASCII. */
const NOT_ASCII = 0x80;

export interface StrayCharacters {
  /** `a line feed (byte 0x0a)`. */
  readonly what: string;
  /** ` at its end`; empty if it is within the name. */
  readonly where: string;
  /** The name without it, absolute; null if unclear. */
  readonly meant: string | null;
  readonly isTemplate: boolean;
}

/** Null if all characters are allowed in a host name. */
export function strayCharacters(name: string): StrayCharacters | null {
  const raw = name
    .replaceAll(ESCAPE, (_, code: string) =>
      code.length === 3 ? String.fromCharCode(Number(code)) : code,
    )
    .replace(/\.$/, '');
  // Each byte of the name is one character.
  const all = raw.split('');
  const found = all.filter((each) => STRAY.test(each));
  const [first] = found;
  if (first === undefined) return null;
  const isTemplate = found.some((each) => TEMPLATE.test(each));
  const atStart = STRAY.test(raw[0]!);
  const atEnd = STRAY.test(raw.at(-1)!);
  const code = first.charCodeAt(0);
  const own =
    NAMES.get(first) ??
    (code >= NOT_ASCII
      ? `a character outside ASCII (byte 0x${code.toString(16)})`
      : code > 0x20 && code < 0x7f
        ? `the character ${first}`
        : `a control character (byte 0x${code.toString(16).padStart(2, '0')})`);
  const kept = all.filter((each) => !STRAY.test(each)).join('');
  return {
    what: own,
    where: atEnd ? (atStart ? ' at both ends' : ' at its end') : atStart ? ' at its start' : '',
    meant: isTemplate || kept === '' || !(atStart || atEnd) ? null : `${kept}.`,
    isTemplate,
  };
}
