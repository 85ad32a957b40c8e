/** Assembles programs for the kernel's eBPF machine (RFC 9669); each instruction takes 8 bytes. */

/** Registers: 0 holds results, 1 to 5 arguments, 6 to 9 survive calls, 10 is the frame pointer. */
export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10;

/** Load and store sizes, in bytes. */
export type Width = 1 | 2 | 4 | 8;

/** A label or an instruction. Jumps refer to labels by name. */
export type BpfLine = string | BpfInstruction;

/** An instruction whose jump target is not resolved yet. */
export interface BpfInstruction {
  readonly code: number;
  readonly to: Register;
  readonly from: number;
  readonly offset: number | string;
  readonly value: number;
  /** Instructions with a 64-bit immediate take two slots. */
  readonly wide?: true;
}

const widths: Readonly<Record<Width, number>> = { 1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18 };
const CLASS = { LOAD_WIDE: 0x18, LOAD: 0x61, STORE: 0x63, STORE_VALUE: 0x62 } as const;
/** A wide load whose value is a map descriptor (BPF_PSEUDO_MAP_FD). */
const MAP = 1;
const EXIT = 0x95;
const CALL = 0x85;
const JUMP = 0x05;

const make = (
  code: number,
  to: Register,
  from: number,
  offset: number | string,
  value: number,
): BpfInstruction => ({ code, to, from, offset, value });

/** `to = *(from + offset)`. */
export function load(width: Width, to: Register, from: Register, offset: number): BpfInstruction {
  return make(CLASS.LOAD | widths[width], to, from, offset, 0);
}

/** `*(to + offset) = from`. */
export function store(width: Width, to: Register, offset: number, from: Register): BpfInstruction {
  return make(CLASS.STORE | widths[width], to, from, offset, 0);
}

/** `*(to + offset) = value`. */
export function storeValue(
  width: Width,
  to: Register,
  offset: number,
  value: number,
): BpfInstruction {
  return make(CLASS.STORE_VALUE | widths[width], to, 0, offset, value);
}

/** `to = from`. */
export function copy(to: Register, from: Register): BpfInstruction {
  return make(0xbf, to, from, 0, 0);
}

type OfValue = (to: Register, value: number) => BpfInstruction;
type JumpIf = (register: Register, value: number, label: string) => BpfInstruction;

const ofValue =
  (code: number): OfValue =>
  (to, value) =>
    make(code, to, 0, 0, value);
const jumpIf =
  (code: number): JumpIf =>
  (register, value, label) =>
    make(code, register, 0, label, value);

/** `to = value`. */
export const set: OfValue = ofValue(0xb7);
/** `to += value`. */
export const add: OfValue = ofValue(0x07);
/** `to &= value`. */
export const and: OfValue = ofValue(0x57);
/** `to <<= value`. */
export const shiftLeft: OfValue = ofValue(0x67);
/** Logical right shift: `to >>= value`. */
export const shiftRight: OfValue = ofValue(0x77);
/** Jumps if `register == value`. */
export const ifEqual: JumpIf = jumpIf(0x15);
/** Jumps if `register != value`. */
export const ifDiffers: JumpIf = jumpIf(0x55);

export function jump(label: string): BpfInstruction {
  return make(JUMP, 0, 0, label, 0);
}

/** Calls a kernel helper by number. */
export function call(helper: number): BpfInstruction {
  return make(CALL, 0, 0, 0, helper);
}

/** Loads the map with this descriptor into `to`. */
export function map(to: Register, fd: number): BpfInstruction {
  return { code: CLASS.LOAD_WIDE, to, from: MAP, offset: 0, value: fd, wide: true };
}

/** Ends the program. Register 0 is its result. */
export const exit: BpfInstruction = make(EXIT, 0, 0, 0, 0);

/** Encodes the program in the kernel's format. */
export function assembleBpf(lines: readonly BpfLine[]): Uint8Array {
  const labels = new Map<string, number>();
  const steps: { readonly at: number; readonly line: BpfInstruction }[] = [];
  let at = 0;
  for (const line of lines) {
    if (typeof line === 'string') {
      labels.set(line, at);
      continue;
    }
    steps.push({ at, line });
    at += line.wide === true ? 2 : 1;
  }
  const out = new DataView(new ArrayBuffer(at * 8));
  for (const { at: place, line } of steps) {
    const { code, to, from, offset, value } = line;
    const target = typeof offset === 'number' ? null : labels.get(offset);
    if (target === undefined) throw new Error(`there is no label ${offset}`);
    out.setUint8(place * 8, code);
    out.setUint8(place * 8 + 1, to | (from << 4));
    out.setInt16(place * 8 + 2, target === null ? Number(offset) : target - place - 1, true);
    out.setInt32(place * 8 + 4, value, true);
  }
  return new Uint8Array(out.buffer);
}
