/**
 * A number as Go's clients print it, so that scrapes compare equal line by line: the shortest
 * digits that read back as the same value, with an exponent (of two digits at least) below 0.0001
 * and from 1e+06 on: `0.00025`, `16000`, `1e+06`, `1.5e-05`, `+Inf`, `NaN`.
 */
export function printNumber(value: number): string {
  if (Number.isInteger(value) && value < 1e6 && value > -1e6) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  if (value === Infinity) return '+Inf';
  if (value === -Infinity) return '-Inf';
  const scientific = value.toExponential();
  const split = scientific.indexOf('e');
  const exponent = Number(scientific.slice(split + 1));
  if (exponent >= -4 && exponent < 6) return String(value);
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${scientific.slice(0, split)}e${exponent < 0 ? '-' : '+'}${digits}`;
}

/**
 * The same for OpenMetrics, which distinguishes floats from integers by a point or an exponent:
 * `1.0`.
 */
export function printFloat(value: number): string {
  const text = printNumber(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** A count with all its digits: `1234567`, where a float would be `1.234567e+06`. */
export function printCount(count: number): string {
  return count < 1e21 ? String(count) : BigInt(count).toString();
}
