/** Parses TTLs in zone files. */

const unitSeconds: Readonly<Record<string, number>> = {
  s: 1,
  m: 60,
  h: 3600,
  d: 86_400,
  w: 604_800,
};

/**
 * Converts `3600` or `1h`, `1w2d3h4m5s` (BIND's units, in any case) to seconds. Returns null if it is not a TTL or
 * exceeds 32 bits.
 */
export function parseTtl(text: string): number | null {
  if (!/^\d/.test(text)) return null;
  let total = 0;
  let digits = '';
  for (const char of text.toLowerCase()) {
    if (char >= '0' && char <= '9') {
      digits += char;
      continue;
    }
    const unit = unitSeconds[char];
    if (unit === undefined || digits === '') return null;
    total += Number(digits) * unit;
    digits = '';
  }
  total += Number(digits);
  return total <= 0xffff_ffff ? total : null;
}
