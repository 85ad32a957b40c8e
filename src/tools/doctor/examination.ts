/**
 * Exchanges in, findings out: doctor without files, sockets and clocks. Hand `events` to a
 * `Reading`, or call them, and ask for the diagnosis at any time.
 */
import { cutRemark } from '../capture/pair/pairing.ts';
import { SearchDomains } from '../capture/pair/search-walk.ts';
import { missingRemark } from '../capture/read/packets/tcp-streams.ts';
import type { ReadingEvents } from '../capture/read/reading.ts';
import { diagnose, type Diagnosis } from './diagnosis.ts';
import type { FindingKind } from './findings/finding.ts';
import { Observations } from './observe/observations.ts';
import { everything, holds, holdsTime, type Part } from './part-diagnosis.ts';
import { AROUND_PART_MS } from './thresholds/lateness.ts';

export type ExaminedEvents = {
  readonly [K in 'ended' | 'lookup' | 'path' | 'neighbour' | 'failure' | 'line']: NonNullable<
    ReadingEvents[K]
  >;
} & Pick<ReadingEvents, 'again'>;

/** The messages that a `Reading` could not read, or not whole. */
export interface UnreadInput {
  readonly remarks: { count(text: string): number };
  readonly totals: { readonly messages: number };
}

/** Observes one stream of events, all of it or several parts of it. */
export class Examination {
  /** Shared with the `Reading`, which learns them. */
  readonly domains: SearchDomains;
  /** One for each part, in their order. */
  readonly observed: readonly Observations[];
  readonly events: ExaminedEvents;
  readonly #parts: readonly Part[];
  #exchanges = 0;
  #unknownLines = 0;
  #known: { readonly wanted: unknown; readonly diagnosis: Diagnosis } | null = null;

  constructor(domains: SearchDomains = new SearchDomains(), parts: readonly Part[] = [everything]) {
    this.domains = domains;
    this.#parts = parts;
    this.observed = parts.map(() => new Observations(domains));
    this.events = this.#eventsOf(parts.map((part, at) => [part, this.observed[at]!] as const));
  }

  /** The time that a `Reading` has to read for these parts, in milliseconds since 1970. */
  get extent(): {
    readonly fromMs: number;
    readonly toMs: number;
    readonly domains: SearchDomains;
  } {
    return {
      fromMs: Math.min(...this.#parts.map(({ fromMs }) => fromMs)) - AROUND_PART_MS,
      toMs: Math.max(...this.#parts.map(({ toMs }) => toMs)) + AROUND_PART_MS,
      domains: this.domains,
    };
  }

  /** The number of exchanges, counters and log lines that were understood. */
  get understood(): number {
    const { counters, logged } = this.observed[0]!;
    return this.#exchanges + counters.lines + logged.lines;
  }

  /** Lines that are neither a counter nor a line of a log. */
  get unknownLines(): number {
    return this.#unknownLines;
  }

  /** Notes what the reading could not read: such losses are not losses of DNS. */
  noteUnread({ remarks, totals }: UnreadInput): void {
    this.#known = null;
    for (const each of this.observed) {
      each.missingFragments = remarks.count('fragments of a packet are missing');
      each.missingSegments = remarks.count(missingRemark);
      each.cut.messages = remarks.count(cutRemark);
      each.cut.of = totals.messages;
    }
  }

  /**
   * The diagnosis of the first part. It is computed only if something arrived since it was asked
   * for with the same `wanted`.
   */
  diagnosis(wanted?: (kind: FindingKind) => boolean): Diagnosis {
    if (this.#known === null || this.#known.wanted !== wanted)
      this.#known = { wanted, diagnosis: diagnose(this.observed[0]!, wanted) };
    return this.#known.diagnosis;
  }

  #eventsOf(looks: readonly (readonly [Part, Observations])[]): ExaminedEvents {
    const all = looks.filter(([part]) => part === everything);
    return {
      ended: (exchange) => {
        this.#known = null;
        this.#exchanges++;
        for (const [part, observed] of looks)
          if (holds(part, exchange.sentMs, exchange.client.address)) observed.exchange(exchange);
      },
      again: (exchange, reply, timeMs) => {
        this.#known = null;
        for (const [part, observed] of looks)
          if (holds(part, exchange.sentMs, exchange.client.address))
            observed.secondReplies.add(exchange, reply, timeMs);
      },
      lookup: (lookup) => {
        this.#known = null;
        for (const [part, observed] of looks)
          if (holds(part, lookup.startMs, lookup.client)) observed.lookup(lookup);
      },
      path: (event) => {
        this.#known = null;
        for (const [part, observed] of looks)
          if (holdsTime(part, event.timeMs)) observed.path(event);
      },
      neighbour: (timeMs, ...of) => {
        this.#known = null;
        for (const [part, observed] of looks)
          if (holdsTime(part, timeMs)) observed.neighbour(timeMs, ...of);
      },
      failure: (failure) => {
        this.#known = null;
        for (const [, observed] of looks) observed.failure(failure);
        for (const [, { logged }] of all) logged.failure(failure);
      },
      line: ({ text, timeMs, pod }) => {
        this.#known = null;
        let isKnown = false;
        for (const [, { counters }] of looks) isKnown = counters.line(text) || isKnown;
        // Findings of a log are about the whole log.
        for (const [, { logged }] of all) isKnown = logged.line(text, timeMs, pod) || isKnown;
        if (!isKnown) this.#unknownLines++;
      },
    };
  }
}
