/** Address weights, which come from a file, and weighted drawing. */
import { bytesKey, holdsAt } from '../../base/copy-bytes.ts';
import { parseAddress } from '../../base/ip.ts';
import { Problem } from '../../base/problem.ts';
import type { Random } from '../../base/random.ts';
import { isDomainName } from '../../corefile/zones.ts';
import { foldName, parseName } from '../../wire/name.ts';
import { expandName } from '../../wire/records.ts';

/** The weights of a name's addresses, as plain data. */
export interface NameWeights {
  /** Absolute, in lower case. */
  readonly name: string;
  readonly weights: readonly { readonly address: string; readonly weight: number }[];
}

/**
 * Parses a weight file, which consists of lines with a name, each followed by `ADDRESS WEIGHT` lines for it. Weights
 * are 1 to 255, and `#` starts a comment.
 * @throws Problem with file and line
 */
export function readWeights(text: string, file: string): readonly NameWeights[] {
  const found: { name: string; weights: { address: string; weight: number }[] }[] = [];
  text.split('\n').forEach((line, index) => {
    const words = line.replace(/#.*/, '').trim().split(/\s+/).filter(Boolean);
    const fail = (what: string, remedy: string): never => {
      throw new Problem({
        code: 'weight-file',
        text: `plugin/loadbalance: ${what} in weight file ${file}`,
        place: { file, line: index + 1, column: 0 },
        remedy,
      });
    };
    const [first = '', second = ''] = words;
    switch (words.length) {
      case 0:
        return;
      case 1:
        if (!isDomainName(first))
          fail(
            `Wrong domain name:"${first}"`,
            'A line with one word is a name, such as www.example.org',
          );
        found.push({ name: first.toLowerCase(), weights: [] });
        return;
      case 2: {
        const current =
          found.at(-1) ??
          fail(`Missing domain name before "${line.trim()}"`, 'Put a line with the name above it.');
        if (parseAddress(first) === null)
          fail(`Wrong IP address:"${first}"`, 'Write an IPv4 or IPv6 address.');
        if (!/^\d+$/.test(second) || Number(second) < 1 || Number(second) > 255) {
          fail(`Wrong weight value:"${second}"`, 'Weights are whole numbers from 1 to 255.');
        }
        current.weights.push({ address: first, weight: Number(second) });
        return;
      }
      default:
        fail(`Could not parse weight line:"${line.trim()}"`, 'Lines are NAME, or ADDRESS WEIGHT.');
    }
  });
  return found;
}

export interface AddressPlace {
  readonly at: number;
  readonly length: number;
}

interface Weighted {
  readonly bytes: Uint8Array;
  readonly weight: number;
}

/** Draws addresses by weight. Addresses that are missing from the file have a weight of 1. */
export class Weights {
  readonly #random: Random;
  #byName = new Map<string, readonly Weighted[]>();

  constructor(random: Random) {
    this.#random = random;
  }

  replace(all: readonly NameWeights[]): void {
    this.#byName = new Map(
      all.map(({ name, weights }) => [
        bytesKey(foldName(parseName(name))),
        weights.map(({ address, weight }) => ({ bytes: parseAddress(address)!, weight })),
      ]),
    );
  }

  /**
   * Draws one of `count` addresses for the owner at `ownerAt`.
   * @param place returns the offset of the address with the given index
   * @returns the index that was drawn
   */
  draw(
    message: Uint8Array,
    start: number,
    ownerAt: number,
    count: number,
    place: (index: number) => AddressPlace,
  ): number {
    const known = this.#byName.get(bytesKey(foldName(expandName(message, start, ownerAt)))) ?? [];
    const weights = Array.from({ length: count }, (_, index) => {
      const { at, length } = place(index);
      const found = known.find(
        ({ bytes }) => bytes.length === length && holdsAt(message, at, bytes),
      );
      return found?.weight ?? 1;
    });
    let left = this.#random.integer(weights.reduce((sum, weight) => sum + weight, 0));
    for (let index = 0; index < count; index++) {
      left -= weights[index]!;
      if (left < 0) return index;
    }
    return 0;
  }
}
