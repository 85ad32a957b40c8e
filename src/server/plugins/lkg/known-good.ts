/** The last good answers for popular names. */
import { bytesKey } from '../../base/copy-bytes.ts';
import { NameFilter } from './name-filter.ts';
import { SpaceSaving } from '../../metrics/space-saving.ts';
import { FLAG, TYPE } from '../../wire/iana.ts';
import { NAME_MAX } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';

/** Maximum number of answers per name, for different types, with and without signatures. */
const ANSWERS_MAX = 8;
/** Larger answers, in bytes, are not stored. */
const REPLY_MAX = 8 * 1024;
/** Maximum number of names to examine when making room for an answer. */
const LOOKED_MAX = 64;

export interface GoodAnswer {
  /** The name's key, from `nameKey`. */
  readonly name: string;
  readonly type: number;
  /** The query's DO and CD. Signed answers and answers without validation are only for clients that requested them. */
  readonly variant: number;
  readonly reply: Reply;
  /** Clock time in ms when the upstream first denied it, or -1. */
  since: number;
}

export interface KnownGoodParts {
  readonly names: number;
  /** Size of all answers in bytes. */
  readonly bytes: number;
  readonly asked: number;
}

/**
 * Counts in a fixed-size sketch how often each name gets a good answer from upstreams, and stores answers for popular
 * names. A flood of random names evicts only the least popular ones.
 */
export class KnownGood {
  /** Size of all answers in bytes. */
  bytes = 0;
  held = 0;
  readonly #parts: KnownGoodParts;
  readonly #names: SpaceSaving;
  readonly #seen = new NameFilter();
  readonly #answers: (readonly GoodAnswer[] | undefined)[] = [];
  /**
   * Answers held for names that were evicted from the sketch, by name. There can be no more of them than names in the
   * sketch.
   */
  readonly #homeless = new Map<string, readonly GoodAnswer[]>();
  readonly #records = new Records();
  #hand = 0;

  constructor(parts: KnownGoodParts) {
    this.#parts = parts;
    this.#names = new SpaceSaving(parts.names, NAME_MAX);
  }

  get size(): number {
    return this.#names.size;
  }

  took(query: Query, reply: Reply): void {
    const names = this.#names;
    const isNew = names.find(query.folded, 0, query.nameLength) < 0;
    // Names that occur only once, such as random names below a wildcard, never replace another name.
    const isFull = names.size === names.capacity;
    if (isNew && isFull && !this.#seen.again(query.folded, query.nameLength)) return;
    const slot = names.add(query.folded, 0, query.nameLength);
    if (names.replaced) this.#drop(slot, query);
    if (this.#answered(slot) < this.#parts.asked || reply.size > REPLY_MAX) return;
    const variant = variantOf(query);
    const others = this.#of(slot).filter((each) => {
      const same = each.type === query.type && each.variant === variant;
      if (same) this.#forget(each);
      return !same;
    });
    this.#answers[slot] = others;
    if (others.length >= ANSWERS_MAX || !this.#makeRoom(slot, reply.size)) return;
    this.bytes += reply.size;
    const kept = reply.own().with({ ttlAt: this.#ttlsOf(reply) });
    // AD is cleared, because an old answer is no longer validated once the upstream denies it. Clients can still check
    // the signatures.
    kept.bytes[3]! &= ~FLAG.AD;
    const name = nameKey(query);
    this.#answers[slot] = [...others, { name, type: query.type, variant, reply: kept, since: -1 }];
  }

  answers(query: Query): readonly GoodAnswer[] {
    const slot = this.#names.find(query.folded, 0, query.nameLength);
    if (slot >= 0) return this.#of(slot);
    return this.#homeless.size === 0 ? none : (this.#homeless.get(nameKey(query)) ?? none);
  }

  /** Returns the one of these answers that fits the query, or null. */
  static among(answers: readonly GoodAnswer[], query: Query): GoodAnswer | null {
    const variant = variantOf(query);
    return answers.find((each) => each.type === query.type && each.variant === variant) ?? null;
  }

  /**
   * Returns the most suitable answer. This is the query's own, or a validated one if the query does not disable
   * validation (CD). Otherwise, it is the answer for the other client kind, with or without signatures (`isSigned`).
   */
  static fitting(answers: readonly GoodAnswer[], query: Query): GoodAnswer | null {
    const exact = KnownGood.among(answers, query);
    if (exact !== null) return exact;
    const like = variantOf(query) & ~UNCHECKED;
    const of = (variant: number): GoodAnswer | undefined =>
      answers.find((each) => each.type === query.type && each.variant === variant);
    return of(like) ?? of(like ^ SIGNED) ?? null;
  }

  static isSigned({ variant }: GoodAnswer): boolean {
    return (variant & SIGNED) !== 0;
  }

  hold(answer: GoodAnswer, now: number): void {
    answer.since = now;
    this.held++;
  }

  /**
   * Releases a name's answers for which `when` is true, or those of all names if `name` is null.
   * @returns how many answers were released
   */
  release(name: Uint8Array | null, when: (answer: GoodAnswer) => boolean = () => true): number {
    const slots =
      name === null
        ? Array.from({ length: this.#names.size }, (_, slot) => slot)
        : [this.#names.find(name, 0, name.length)].filter((slot) => slot >= 0);
    let released = 0;
    const left = (answers: readonly GoodAnswer[]): readonly GoodAnswer[] =>
      answers.filter((answer) => {
        if (!when(answer)) return true;
        this.#forget(answer);
        released++;
        return false;
      });
    for (const slot of slots) this.#answers[slot] = left(this.#of(slot));
    for (const [key, answers] of this.#homeless) {
      if (name !== null && key !== bytesKey(name)) continue;
      const others = left(answers);
      if (others.length === 0) this.#homeless.delete(key);
      else this.#homeless.set(key, others);
    }
    return released;
  }

  /** Halves all counts, so that older queries carry less weight. */
  age(): void {
    this.#names.halve();
  }

  #of(slot: number): readonly GoodAnswer[] {
    return this.#answers[slot] ?? none;
  }

  /** Clears a slot for another name, without affecting answers that are being held. */
  #drop(slot: number, query: Query): void {
    const homeless = this.#homeless;
    for (const answer of this.#of(slot)) {
      const { name, since } = answer;
      const isHeld = since >= 0 && (homeless.has(name) || homeless.size < this.#parts.names);
      if (isHeld) homeless.set(name, [...(homeless.get(name) ?? none), answer]);
      else this.#forget(answer);
    }
    const name = homeless.size === 0 ? '' : nameKey(query);
    this.#answers[slot] = homeless.get(name) ?? none;
    homeless.delete(name);
  }

  #forget(answer: GoodAnswer): void {
    this.bytes -= answer.reply.size;
    if (answer.since >= 0) this.held--;
  }

  /**
   * Removes answers that are worth less than one of `size` bytes for the name in `slot`, until that one fits. An
   * answer's worth is the number of queries for its name per byte. If the memory is full of large answers, they
   * therefore displace each other rather than answers that are used often.
   */
  #makeRoom(slot: number, size: number): boolean {
    const { bytes } = this.#parts;
    const worth = this.#answered(slot) / size;
    for (let looked = 0; looked < LOOKED_MAX && this.bytes + size > bytes; looked++) {
      this.#hand = (this.#hand + 1) % this.#names.size;
      const answers = this.#of(this.#hand);
      if (answers.length === 0 || this.#hand === slot) continue;
      const answered = this.#answered(this.#hand);
      this.#answers[this.#hand] = answers.filter((each) => {
        const stays = each.since >= 0 || answered / each.reply.size >= worth;
        if (!stays) this.#forget(each);
        return stays;
      });
    }
    return this.bytes + size <= bytes;
  }

  #answered(slot: number): number {
    return this.#names.count(slot) - this.#names.error(slot);
  }

  #ttlsOf(reply: Reply): Uint16Array {
    const found: number[] = [];
    const records = this.#records;
    for (records.of(reply); records.next();)
      if (records.type !== TYPE.OPT) found.push(records.ttlAt - records.start);
    return Uint16Array.from(found);
  }
}

const none: readonly GoodAnswer[] = [];

function nameKey({ folded, nameLength }: Query): string {
  return bytesKey(folded.subarray(0, nameLength));
}

/** Variant flag: the query had DO. */
const SIGNED = 1;
/** Variant flag: the query had CD. */
const UNCHECKED = 2;

function variantOf({ dnssecOk, flags }: Query): number {
  return (dnssecOk ? SIGNED : 0) | ((flags & FLAG.CD) === 0 ? 0 : UNCHECKED);
}
