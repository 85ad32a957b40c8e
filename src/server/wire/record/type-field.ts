import { typeName, typeNumber } from '../iana.ts';
import type { Field } from './kind.ts';

/** A record type number, which is written by name in text. */
export const typeField: Field<number> = {
  read: (from) => from.u16(),
  write: (value, to) => to.u16(value),
  print: typeName,
  parse(from, what) {
    const word = from.next(what);
    return (
      typeNumber(word) ?? from.fail(`${what} must be a record type, not ${JSON.stringify(word)}`)
    );
  },
};

/** A set of record types in ascending order, stored as windows of 256, each with a bitmap (RFC 4034 section 4.1.2). */
export const typeSet: Field<readonly number[]> = {
  read(from) {
    const types: number[] = [];
    for (let before = -1; from.left > 0;) {
      const window = from.u8();
      const length = from.u8();
      if (window <= before) from.fail('the windows of a type bitmap are not in ascending order');
      if (length === 0 || length > 32)
        from.fail(`a window of a type bitmap has 1 to 32 bytes, not ${length}`);
      before = window;
      from.bytes(length).forEach((byte, index) => {
        for (let bit = 0; bit < 8; bit++)
          if (((byte << bit) & 0x80) !== 0) types.push(window * 256 + index * 8 + bit);
      });
    }
    return types;
  },
  write(value, to) {
    const windows = new Map<number, Uint8Array>();
    for (const type of value.toSorted((a, b) => a - b)) {
      const bitmap = windows.get(type >> 8) ?? new Uint8Array(32);
      windows.set(type >> 8, bitmap);
      bitmap[(type & 0xff) >> 3]! |= 0x80 >> (type & 7);
    }
    for (const [window, bitmap] of windows) {
      const length = bitmap.findLastIndex((byte) => byte !== 0) + 1;
      to.u8(window);
      to.u8(length);
      to.bytes(bitmap, 0, length);
    }
  },
  print: (value) => value.map(typeName).join(' '),
  parse(from, what) {
    const types = new Set<number>();
    while (from.left > 0) types.add(typeField.parse(from, what));
    return [...types].sort((a, b) => a - b);
  },
};
