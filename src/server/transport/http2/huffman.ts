/** HPACK's Huffman code (RFC 7541 section 5.2). */

/**
 * Bit lengths of the Huffman code for each byte (RFC 7541 appendix B), followed by that of the end-of-string code. The
 * code is canonical: shorter codes come first, and codes of equal length are in symbol order. The lengths therefore
 * define it completely.
 */
// oxfmt-ignore
const lengths = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
] as const;

const END_OF_STRING = 256;
/** The result of processing a nibble: the next state, and possibly a decoded byte. */
const STATE = 0xff;
const SYMBOL_SHIFT = 8;
const EMITS = 1 << 16;
const WRONG = 1 << 17;
/**
 * A string that ends in the middle of a code is valid only if the remaining bits are up to seven ones. They are the
 * start of the end-of-string code.
 */
const PADDING_MAX = 7;

interface HuffmanTables {
  /** Indexed by state (an inner node of the code's tree) and nibble. */
  readonly steps: Uint32Array;
  /** By state: whether a string may end there. */
  readonly mayEnd: Uint8Array;
}

let made: HuffmanTables | null = null;

/**
 * Decodes a Huffman string in a header block into `out`, which must be at least 8/5 of its length.
 * @returns its end in `out`, or -1 if the string is malformed
 */
export function decodeHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
): number {
  const { steps, mayEnd } = (made ??= makeTables());
  let state = 0;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    let step = steps[(state << 4) | (byte >> 4)]!;
    if ((step & EMITS) !== 0) out[at++] = step >> SYMBOL_SHIFT;
    else if ((step & WRONG) !== 0) return -1;
    step = steps[((step & STATE) << 4) | (byte & 15)]!;
    if ((step & EMITS) !== 0) out[at++] = step >> SYMBOL_SHIFT;
    else if ((step & WRONG) !== 0) return -1;
    state = step & STATE;
  }
  return mayEnd[state] === 1 ? at : -1;
}

function makeTables(): HuffmanTables {
  const zero: number[] = [0];
  const one: number[] = [0];
  // A child is the number of an inner node, or a symbol encoded as a negative number.
  const symbols = lengths
    .map((_, symbol) => symbol)
    .toSorted((a, b) => lengths[a]! - lengths[b]! || a - b);
  let code = 0;
  let before = 0;
  for (const symbol of symbols) {
    const length = lengths[symbol]!;
    code <<= length - before;
    before = length;
    let node = 0;
    for (let bit = length - 1; bit >= 0; bit--) {
      const children = ((code >> bit) & 1) === 0 ? zero : one;
      if (bit === 0) children[node] = ~symbol;
      else if (children[node] === 0) {
        children[node] = zero.length;
        node = zero.push(0) - 1;
        one.push(0);
      } else node = children[node]!;
    }
    code++;
  }
  const steps = new Uint32Array(zero.length << 4);
  for (let state = 0; state < zero.length; state++) {
    for (let nibble = 0; nibble < 16; nibble++) {
      steps[(state << 4) | nibble] = walk(zero, one, state, nibble);
    }
  }
  const mayEnd = new Uint8Array(zero.length);
  for (let ones = 0, node = 0; ones <= PADDING_MAX; ones++, node = one[node]!) mayEnd[node] = 1;
  return { steps, mayEnd };
}

/** Follows four steps down the tree. No code is shorter than five bits, so at most one code ends within a nibble. */
function walk(
  zero: readonly number[],
  one: readonly number[],
  state: number,
  nibble: number,
): number {
  let node = state;
  let emitted = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const next = ((nibble >> bit) & 1) === 0 ? zero[node]! : one[node]!;
    if (next >= 0) node = next;
    else {
      if (~next === END_OF_STRING) return WRONG;
      emitted = EMITS | (~next << SYMBOL_SHIFT);
      node = 0;
    }
  }
  return emitted | node;
}
