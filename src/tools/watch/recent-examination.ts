/** Doctor's findings over the last seconds of an endless stream. */
import type { SearchDomains } from '../capture/pair/search-walk.ts';
import type { Diagnosis } from '../doctor/diagnosis.ts';
import { Examination, type ExaminedEvents } from '../doctor/examination.ts';
import type { Observations } from '../doctor/observe/observations.ts';

/** The number of messages in a stream, and remarks about unreadable ones, by text. */
export interface ReadSoFar {
  readonly messages: number;
  readonly counts: ReadonlyMap<string, number>;
}

/** Examines exchanges that started at a given time or later. */
interface Generation {
  readonly sinceMs: number;
  /** Null if it was abandoned because there were more exchanges than it accepts. */
  examination: Examination | null;
  /** The reading progress when it started. */
  readonly unread: ReadSoFar;
  exchanges: number;
}

/** The start and the limits of a window of examinations. */
export interface RecentParts {
  /** In milliseconds. The diagnosis covers at least this long and at most twice as long. */
  readonly windowMs: number;
  /** The number of exchanges that a generation accepts before it is abandoned. Infinite by default. */
  readonly most?: number;
  readonly domains: SearchDomains;
  readonly unread: () => ReadSoFar;
}

/**
 * Observations only accumulate, so two generations observe the same events. The older one provides the diagnosis, and
 * is dropped once the younger one covers the window.
 */
export class RecentExamination {
  readonly #parts: RecentParts;
  #older: Generation | null = null;
  #younger: Generation | null = null;

  constructor(parts: RecentParts) {
    this.#parts = parts;
  }

  ended: ExaminedEvents['ended'] = (exchange) => {
    const { sentMs } = exchange;
    const { most = Infinity } = this.#parts;
    for (const each of [this.#older, this.#younger]) {
      if (each === null || each.examination === null || sentMs < each.sinceMs) continue;
      // For minutes, its observations would take up as much memory as the short window.
      if (++each.exchanges > most) each.examination = null;
      else each.examination.events.ended(exchange);
    }
  };

  lookup: ExaminedEvents['lookup'] = (lookup) => {
    this.#each(lookup.startMs, (events) => events.lookup(lookup));
  };

  path: ExaminedEvents['path'] = (event) => {
    this.#each(event.timeMs, (events) => events.path(event));
  };

  neighbour: ExaminedEvents['neighbour'] = (timeMs, ...of) => {
    this.#each(timeMs, (events) => events.neighbour(timeMs, ...of));
  };

  failure: ExaminedEvents['failure'] = (failure) => {
    this.#each(failure.timeMs, (events) => events.failure(failure));
  };

  line: ExaminedEvents['line'] = (line, number) => {
    this.#each(line.timeMs, (events) => events.line(line, number));
  };

  /** Moves the window along with the stream's clock. The first call opens it. */
  advance(nowMs: number): void {
    const { windowMs } = this.#parts;
    const younger = this.#younger;
    if (younger !== null && nowMs - younger.sinceMs < windowMs) return;
    if (younger === null) this.#older = this.#generation(-Infinity);
    // After a long pause, nothing from before it is recent.
    else if (nowMs - younger.sinceMs > 2 * windowMs)
      this.#older = this.#generation(nowMs - windowMs);
    else this.#older = younger;
    this.#younger = this.#generation(nowMs);
  }

  /** The observations behind the diagnosis. Null if there are none, or too many. */
  get observed(): Observations | null {
    return this.#older?.examination?.observed[0] ?? null;
  }

  /** Null if nothing has been observed yet, or so much that a shorter window is enough. */
  diagnosis(): Diagnosis | null {
    const { examination, unread } = this.#older ?? { examination: null };
    if (examination === null || unread === undefined) return null;
    const { counts, messages } = this.#parts.unread();
    examination.noteUnread({
      remarks: { count: (text) => (counts.get(text) ?? 0) - (unread.counts.get(text) ?? 0) },
      totals: { messages: messages - unread.messages },
    });
    return examination.diagnosis();
  }

  #each(timeMs: number | null, run: (events: ExaminedEvents) => void): void {
    for (const each of [this.#older, this.#younger])
      if (each !== null && each.examination !== null && (timeMs ?? Infinity) >= each.sinceMs)
        run(each.examination.events);
  }

  #generation(sinceMs: number): Generation {
    const { domains, unread } = this.#parts;
    return { sinceMs, examination: new Examination(domains), unread: unread(), exchanges: 0 };
  }
}
