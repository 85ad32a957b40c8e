/** The trace of a query, which is recorded while the query is answered. */
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { LinkRecorder } from '../../transport/query.ts';
import type { Span } from './span.ts';

/** Maximum number of spans in a trace, because a query can loop. */
const SPANS_MAX = 128;
/** Name of the first span, as in CoreDNS. */
const ROOT = 'servedns';

interface OpenSpan {
  readonly id: string;
  readonly parent: string | null;
  readonly name: string;
  readonly startMs: number;
  /** -1 if not ended yet. */
  endMs: number;
}

/** The trace of a query that is being answered. Times are clock times until it ends. */
export class TraceRecorder implements LinkRecorder {
  readonly trace: string;
  dropped = 0;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #spans: OpenSpan[] = [];
  /** Spans that have been entered but not left. */
  readonly #within: number[] = [0];

  constructor(clock: Clock, random: Random, startMs: number) {
    this.#clock = clock;
    this.#random = random;
    this.trace = id(random) + id(random);
    this.#spans.push({ id: id(random), parent: null, name: ROOT, startMs, endMs: -1 });
  }

  entered(link: string): number {
    const index = this.#spans.length;
    if (index >= SPANS_MAX) {
      this.dropped++;
      return -1;
    }
    const parent = this.#spans[this.#within.at(-1) ?? 0]!.id;
    const startMs = this.#clock.now();
    this.#spans.push({ id: id(this.#random), parent, name: link, startMs, endMs: -1 });
    this.#within.push(index);
    return index;
  }

  left(span: number): void {
    if (span >= 0 && this.#within.at(-1) === span) this.#within.pop();
  }

  done(span: number): void {
    if (span >= 0) this.#spans[span]!.endMs = this.#clock.now();
  }

  /**
   * Ends the trace. Spans whose links have not ended (because of a bug, or of a reply that nothing waited for) end now.
   * @param tags tags for the first span
   */
  finish(tags: Readonly<Record<string, string>>, error: string | null): readonly Span[] {
    const now = this.#clock.now();
    const epoch = this.#clock.wall() - now;
    return this.#spans.map(({ id: own, parent, name, startMs, endMs }, index) => ({
      trace: this.trace,
      id: own,
      parent,
      name,
      startMs: epoch + startMs,
      tookMs: Math.max(0, (endMs < 0 ? now : endMs) - startMs),
      tags: index === 0 ? tags : none,
      error: index === 0 ? error : null,
    }));
  }
}

const none: Readonly<Record<string, string>> = {};

/** Returns 64 nonzero bits as hexadecimal digits. */
function id(random: Random): string {
  const high = random.integer(0x1_0000_0000);
  const low = random.integer(0xffff_ffff) + 1;
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}
