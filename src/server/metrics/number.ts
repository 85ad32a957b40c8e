/**
 * Prints a number as Go's clients do, so that scrapes can be compared line by line. This is the shortest form that
 * parses back to the same value. It has an exponent (at least two digits) below 0.0001 and from 1e+06: `0.00025`,
 * `16000`, `1e+06`, `1.5e-05`, `+Inf`, `NaN`.
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

/** Prints a number for OpenMetrics, where a point or an exponent distinguishes floats from integers: `1.0`. */
export function printFloat(value: number): string {
  const text = printNumber(value);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/** Prints a count with all its digits, e.g. `1234567`. As a float, this would be `1.234567e+06`. */
export function printCount(count: number): string {
  return count < 1e21 ? String(count) : BigInt(count).toString();
}
