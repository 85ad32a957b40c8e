/**
 * The answers for a name and type during one of a server's configurations, and how they compare with those during
 * another.
 */
import { firstOf, RECORD_CHARACTERS_MAX, type SeenAnswer } from './seen-answer.ts';
import type { ChangedAnswer, ReloadOutcome } from './reload-shape.ts';

/** The number of different answers to keep apart. */
const ANSWERS_MAX = 4;
/** The estimated size in bytes of an answer and of a side, without their texts. */
const ANSWER_BYTES = 120;
const SIDE_BYTES = 100;

interface TimedAnswer {
  readonly answer: SeenAnswer;
  firstMs: number;
  lastMs: number;
}

/** Remembers the answers in limited memory. */
export class AnswerSide {
  /** The estimated maximum size in bytes. A record is included in an answer and in its text. */
  static readonly limitBytes: number =
    SIDE_BYTES + ANSWERS_MAX * (ANSWER_BYTES + 4 * RECORD_CHARACTERS_MAX);
  replies = 0;
  /** In the order in which they were first seen. */
  #answers: TimedAnswer[] = [];
  /** Records of answers that were dropped. */
  #others: ReadonlySet<string> = new Set();
  #rotated = false;

  /** @param answer the object from an earlier call for an equal answer, if the caller has it */
  add(answer: SeenAnswer, sentMs: number): void {
    this.replies++;
    const known = this.#answers.find((each) => each.answer.text === answer.text);
    if (known !== undefined) {
      known.firstMs = Math.min(known.firstMs, sentMs);
      known.lastMs = Math.max(known.lastMs, sentMs);
      return;
    }
    this.#answers.push({ answer, firstMs: sentMs, lastMs: sentMs });
    if (this.#answers.length > ANSWERS_MAX) this.#forgetOne();
  }

  /**
   * Removes answers that were first seen at `fromMs` or later, because a reload is reported after the first answers
   * from the new configuration.
   * @returns the answers seen after `toMs`
   */
  splitAt(fromMs: number, toMs: number): AnswerSide {
    const later = new AnswerSide();
    later.#answers = this.#answers
      .filter(({ lastMs }) => lastMs > toMs)
      .map((each) => ({ ...each, firstMs: Math.max(toMs, each.firstMs) }));
    // Replies are not counted by answer, because few arrive before the report of a reload.
    later.replies = later.#answers.length;
    this.#answers = this.#answers.filter(({ firstMs }) => firstMs < fromMs);
    this.replies = Math.max(this.#answers.length, this.replies - later.replies);
    return later;
  }

  get isEmpty(): boolean {
    return this.#answers.length === 0;
  }

  /** The estimated size in bytes. */
  get bytes(): number {
    let bytes = SIDE_BYTES;
    for (const { answer } of this.#answers) bytes += ANSWER_BYTES + 2 * answer.text.length;
    for (const record of this.#others) bytes += record.length;
    return bytes;
  }

  /** @returns null if nothing changed */
  compare(after: AnswerSide): Pick<ChangedAnswer, 'kind' | 'before' | 'after'> | null {
    const kind = this.#differs(after);
    return kind === null ? null : { kind, before: this.#outcome(), after: after.#outcome() };
  }

  #differs(after: AnswerSide): ChangedAnswer['kind'] | null {
    const [kinds, laterKinds] = [this.#kinds(), after.#kinds()];
    // An error or an absence that has occurred before is not new.
    if (![...laterKinds].some((kind) => kinds.has(kind))) {
      const [rcodes, laterRcodes] = [this.#rcodes(), after.#rcodes()];
      return [...laterRcodes].some((rcode) => rcodes.has(rcode)) ? 'records' : 'rcode';
    }
    const [found, later] = [this.#found(), after.#found()];
    if (found.length === 0 || later.length === 0) return null;
    // Answers that are always replaced say nothing about the configuration.
    if (this.#rotates() || after.#rotates()) return null;
    if (found.length === 1 && later.length === 1 && !this.#isCut && !after.#isCut)
      return found[0]!.answer.text === later[0]!.answer.text ? null : 'records';
    // Each reply contains only some of the records, so a change means other records.
    return areDisjoint(this.#records(), after.#records()) ? 'records' : null;
  }

  get #isCut(): boolean {
    return this.#others.size > 0;
  }

  /** Answers with records. */
  #found(): readonly TimedAnswer[] {
    return this.#answers.filter(({ answer }) => answer.records.length > 0);
  }

  #kinds(): ReadonlySet<string> {
    return new Set(
      this.#answers.map(({ answer }) => `${answer.rcode} ${answer.records.length > 0}`),
    );
  }

  #rcodes(): ReadonlySet<string> {
    return new Set(this.#answers.map(({ answer }) => answer.rcode));
  }

  #records(): ReadonlySet<string> {
    return new Set([...this.#others, ...this.#answers.flatMap(({ answer }) => answer.records)]);
  }

  /** True if an answer has no records in common with those before it. */
  #rotates(): boolean {
    if (this.#rotated) return true;
    const before = new Set(this.#others);
    for (const { answer } of this.#found()) {
      if (before.size > 0 && areDisjoint(before, new Set(answer.records))) return true;
      for (const record of answer.records) before.add(record);
    }
    return false;
  }

  #forgetOne(): void {
    this.#rotated = this.#rotates();
    const oldest = this.#answers.reduce((one, each) => (each.lastMs < one.lastMs ? each : one));
    this.#answers = this.#answers.filter((each) => each !== oldest);
    // The newest ones count, so they come first.
    this.#others = new Set(firstOf([...oldest.answer.records, ...this.#others]));
  }

  /** The latest answer, or the records of all answers with the same result code. */
  #outcome(): ReloadOutcome {
    const { answer: last } = this.#answers.reduce((one, each) =>
      each.lastMs >= one.lastMs ? each : one,
    );
    const same = this.#answers.filter(({ answer }) => answer.rcode === last.rcode);
    if (same.length === 1) return outcomeOf(last);
    const records = [...new Set(same.flatMap(({ answer }) => answer.records))].toSorted();
    const shown = firstOf(records);
    return {
      rcode: last.rcode,
      records: shown,
      more: Math.max(records.length - shown.length, last.more),
    };
  }
}

function outcomeOf({ rcode, records, more }: SeenAnswer): ReloadOutcome {
  return { rcode, records, more };
}

function areDisjoint(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  for (const each of one) if (other.has(each)) return false;
  return true;
}
