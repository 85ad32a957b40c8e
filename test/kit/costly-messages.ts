/** 64 KiB messages from an upstream. Some are expensive for parsers that compare names one by one. */
import { TYPE } from '../../src/server/wire/iana.ts';

export type RawRecord = readonly [owner: Uint8Array, type: number, data: Uint8Array];

export const pointer = (to: number): Uint8Array => Uint8Array.of(0xc0 | (to >> 8), to & 0xff);
const address = Uint8Array.of(192, 0, 2, 1);
/** A name of 253 bytes, with the maximum number of labels. */
const longName: Uint8Array = Uint8Array.from([
  ...Array.from({ length: 126 }, () => [1, 97]).flat(),
  0,
]);

/**
 * The longest A reply made of records from `make` that fits into 64 KiB.
 * @param make receives the number of preceding records and the offset of the next one
 */
export function fullMessage(
  make: (index: number, at: number) => RawRecord,
  question: Uint8Array = longName,
): Uint8Array {
  const bytes = new Uint8Array(65_535);
  bytes[2] = 0x80;
  bytes[5] = 1;
  bytes.set(question, 12);
  let at = 12 + question.length;
  bytes[at + 1] = TYPE.A;
  bytes[at + 3] = 1;
  at += 4;
  let count = 0;
  for (;;) {
    const [owner, type, data] = make(count, at);
    if (at + owner.length + 10 + data.length > bytes.length) break;
    bytes.set(owner, at);
    at += owner.length;
    bytes.set([0, type, 0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff], at);
    bytes.set(data, at + 10);
    at += 10 + data.length;
    count++;
  }
  bytes[6] = count >> 8;
  bytes[7] = count & 0xff;
  return bytes.slice(0, at);
}

/** Addresses for the question's name. */
export const plainAddresses = (): Uint8Array => fullMessage(() => [pointer(12), TYPE.A, address]);

/** Aliases between sixty names, in the worst order for a parser: the last in the chain comes first. */
export function aliasChain(): Uint8Array {
  const name = (number: number): Uint8Array =>
    Uint8Array.of(2, 97 + (number >> 5), 97 + (number & 31), ...pointer(12));
  return fullMessage(
    (index) =>
      index === 0
        ? [pointer(12), TYPE.CNAME, name(60)]
        : [name(index % 61), TYPE.CNAME, name(index % 61 === 0 ? 0 : (index % 61) - 1)],
    Uint8Array.of(1, 120, ...Array.from({ length: 120 }, () => [1, 97]).flat(), 0),
  );
}

/** Address records whose owner is an uncompressed copy of the question's name. */
export const copiedName = (): Uint8Array =>
  fullMessage((index) =>
    index === 0
      ? [Uint8Array.of(1, 97, ...pointer(14)), TYPE.A, address]
      : [pointer(12 + longName.length + 4), TYPE.A, address],
  );

/** Owner names with the maximum number of labels, all uncompressed. */
export const manyLabels = (): Uint8Array =>
  fullMessage((index) => [
    Uint8Array.from([
      ...Array.from({ length: 126 }, (_, k) => [1, (index * 7 + k) & 255]).flat(),
      0,
    ]),
    TYPE.A,
    address,
  ]);

/** Owners that each follow a hundred pointers. */
export function manyPointers(): Uint8Array {
  let chain = 12;
  return fullMessage((index, at) => {
    const owner = pointer(chain);
    if (index < 110) chain = at;
    return [owner, TYPE.A, address];
  });
}
