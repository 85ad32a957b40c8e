import { TYPE } from '../iana.ts';
import type { Words } from '../record-words.ts';
import { u32, u8 } from './field.ts';
import type { Field, RecordKind } from './kind.ts';

/** A geographical location. */
export interface GeoLocation {
  /** Always 0: other versions have a different format. */
  readonly version: number;
  /** The location's diameter and the coordinates' precision, in centimetres. Each is one digit and a power of ten. */
  readonly size: number;
  readonly horizontal: number;
  readonly vertical: number;
  /** Thousandths of a second of arc, north positive. */
  readonly latitude: number;
  /** Thousandths of a second of arc, east positive. */
  readonly longitude: number;
  /** Centimetres above the WGS 84 ellipsoid. */
  readonly altitude: number;
}

const EQUATOR = 0x8000_0000;
/** Centimetres below the ellipsoid at which altitudes start. */
const GROUND = 10_000_000;

/** A length in one byte: digit and exponent. */
const span: Field<number> = {
  read(from) {
    const byte = from.u8();
    if (byte >> 4 > 9 || (byte & 15) > 9)
      from.fail('LOC has a length with a digit or exponent above 9');
    return (byte >> 4) * 10 ** (byte & 15);
  },
  write: (value, to) => u8.write(spanByte(value), to),
  print: (value) => (value % 100 === 0 ? `${value / 100}m` : `${(value / 100).toFixed(2)}m`),
  parse: (from, what) => {
    const value = metres(from, what);
    return value >= 0 && value <= 9e9
      ? roundSpan(value)
      : from.fail(`${what} must be from 0 to 90000000 metres`);
  },
};

function spanByte(value: number): number {
  let exponent = 0;
  for (; value >= 10; value /= 10) exponent++;
  return (Math.floor(value) << 4) | exponent;
}

function roundSpan(value: number): number {
  const byte = spanByte(value);
  return (byte >> 4) * 10 ** (byte & 15);
}

/** Geographical location (RFC 1876, section 2). */
export const loc: RecordKind<GeoLocation> = {
  name: 'LOC',
  type: TYPE.LOC,
  read(from) {
    const version = from.u8();
    if (version !== 0) from.fail(`LOC has the unknown version ${version}`);
    const size = span.read(from);
    const horizontal = span.read(from);
    const vertical = span.read(from);
    const latitude = from.u32() - EQUATOR;
    const longitude = from.u32() - EQUATOR;
    if (Math.abs(latitude) > 90 * 3_600_000) from.fail('LOC has a latitude beyond 90 degrees');
    if (Math.abs(longitude) > 180 * 3_600_000) from.fail('LOC has a longitude beyond 180 degrees');
    return {
      version,
      size,
      horizontal,
      vertical,
      latitude,
      longitude,
      altitude: from.u32() - GROUND,
    };
  },
  write(data, to) {
    to.u8(data.version);
    span.write(data.size, to);
    span.write(data.horizontal, to);
    span.write(data.vertical, to);
    u32.write(data.latitude + EQUATOR, to);
    u32.write(data.longitude + EQUATOR, to);
    u32.write(data.altitude + GROUND, to);
  },
  print(data) {
    const latitude = printAngle(data.latitude, 'N', 'S');
    const longitude = printAngle(data.longitude, 'E', 'W');
    const lengths = [data.size, data.horizontal, data.vertical].map((value) =>
      span.print(value, 0),
    );
    return `${latitude} ${longitude} ${(data.altitude / 100).toFixed(2)}m ${lengths.join(' ')}`;
  },
  parse(from) {
    const latitude = parseAngle(from, 'LOC latitude', 90, 'N', 'S');
    const longitude = parseAngle(from, 'LOC longitude', 180, 'E', 'W');
    const altitude = metres(from, 'LOC altitude');
    if (altitude < -GROUND || altitude > 0xffff_ffff - GROUND)
      from.fail('LOC altitude is out of range');
    const next = (what: string, otherwise: number): number =>
      from.left > 0 ? span.parse(from, what) : otherwise;
    const size = next('LOC size', 100);
    const horizontal = next('LOC horizontal precision', 1_000_000);
    const vertical = next('LOC vertical precision', 1000);
    return { version: 0, size, horizontal, vertical, latitude, longitude, altitude };
  },
};

/** `52 22 23.000 N` */
function printAngle(value: number, positive: string, negative: string): string {
  const size = Math.abs(value);
  const degrees = Math.floor(size / 3_600_000);
  const minutes = Math.floor(size / 60_000) % 60;
  const seconds = ((size % 60_000) / 1000).toFixed(3);
  return `${degrees} ${minutes} ${seconds} ${value < 0 ? negative : positive}`;
}

/** Parses degrees, optional minutes, optional seconds and the hemisphere. */
function parseAngle(
  from: Words,
  what: string,
  most: number,
  positive: string,
  negative: string,
): number {
  const parts: number[] = [];
  for (;;) {
    const word = from.next(what);
    const side = word.toUpperCase();
    if (parts.length > 0 && (side === positive || side === negative)) {
      const [degrees = 0, minutes = 0, seconds = 0] = parts;
      const size = Math.round(degrees * 3_600_000 + minutes * 60_000 + seconds * 1000);
      if (minutes >= 60 || seconds >= 60 || size > most * 3_600_000)
        from.fail(`${what} is out of range`);
      return side === negative && size > 0 ? -size : size;
    }
    const form = parts.length === 2 ? /^\d{1,2}(\.\d{1,3})?$/ : /^\d{1,3}$/;
    if (parts.length === 3 || !form.test(word)) {
      from.fail(
        `${what} must be degrees, minutes, seconds and ${positive} or ${negative}, not ${JSON.stringify(word)}`,
      );
    }
    parts.push(Number(word));
  }
}

/** Parses `-44m` or `20.05` into centimetres. */
function metres(from: Words, what: string): number {
  const word = from.next(what);
  const number = /^(-?\d{1,9}(?:\.\d{1,2})?)m?$/.exec(word)?.[1];
  return number === undefined
    ? from.fail(`${what} must be metres, not ${JSON.stringify(word)}`)
    : Math.round(Number(number) * 100);
}
