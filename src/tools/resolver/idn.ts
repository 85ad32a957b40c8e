/**
 * Converts non-ASCII names into queries. DNS carries them in `xn--` form (RFC 5890). Some programs convert names
 * themselves, following one of two standards. Others leave it to libc if the locale is UTF-8, send the raw bytes, or
 * reject the name.
 */
import { asciiHost } from '../../server/base/ascii-host.ts';

/** The name in ASCII according to UTS 46, or null if it cannot be converted. ASCII names are unchanged. */
export function asciiName(name: string): string | null {
  return isAscii(name) ? name : asciiHost(name);
}

/** The name in lower-case ASCII, as Node.js passes it to libc and c-ares. */
export function nodeName(name: string): string | null {
  return asciiName(name)?.toLowerCase() ?? null;
}

/**
 * The name as converted by libidn2. Labels that become too long are rejected.
 * @param lettersOnly only IDNA 2008 (AI_IDN), without symbols; curl falls back to an older standard
 */
export function libidnName(name: string, lettersOnly: boolean): string | null {
  if (isAscii(name)) return name;
  if (lettersOnly && /[\p{S}\p{P}]/u.test(name.replace(/[-_.·\u3002\uff0e\uff61]/g, '')))
    return null;
  const ascii = asciiName(name);
  return ascii?.split('.').every((label) => label.length <= longestLabel) ? ascii : null;
}

/** Why Python's codec rejects a label, and the label's position in the name, in characters. */
export interface LabelProblem {
  readonly kind: 'empty' | 'long' | 'prefix';
  readonly from: number;
  readonly length: number;
}

const aceLabel = /^xn--/i;
const longestLabel = 63;

/**
 * The name as converted by Python's `idna` codec (IDNA 2003, RFC 3490), one label at a time. ASCII labels are
 * unchanged, and only their length is checked.
 */
export function pythonName(name: string): string | LabelProblem {
  const labels: string[] = [];
  let from = 0;
  const parts = name.split(/[.\u3002\uff0e\uff61]/);
  for (const [index, label] of parts.entries()) {
    const last = index === parts.length - 1;
    if (label === '' && !(last && index > 0)) return { kind: 'empty', from, length: 1 };
    if (!isAscii(label) && aceLabel.test(label)) return { kind: 'prefix', from, length: 4 };
    const ascii = isAscii(label) ? label : asciiHost(transitional(label));
    if (ascii === null || ascii.length > longestLabel)
      return { kind: 'long', from, length: label.length };
    labels.push(ascii);
    from += label.length + 1;
  }
  return labels.join('.');
}

/** A label with characters that IDNA 2003 maps and later standards preserve. */
function transitional(label: string): string {
  return label
    .replace(/[ßẞ]/g, 'ss')
    .replace(/ς/g, 'σ')
    .replace(/[\u200c\u200d]/g, '');
}

/** True if libc reads names as UTF-8, false if the environment sets no locale. */
export function isUtf8Locale(env: Readonly<Record<string, string | undefined>>): boolean {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || '';
  return /utf-?8/i.test(locale);
}

export function isAscii(name: string): boolean {
  // eslint-disable-next-line no-control-regex -- every ASCII character counts
  return /^[\u0000-\u007f]*$/.test(name);
}
