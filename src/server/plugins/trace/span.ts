/**
 * Spans: what a trace is made of. Plain data, which travels from the workers to the control plane.
 */

/** One piece of a query's way: all of it, or one plugin's part. */
export interface Span {
  /** The trace's id, 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The span that this one is within; null: it is the trace's first. */
  readonly parent: string | null;
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly tookMs: number;
  /** By name. Of the first span only. */
  readonly tags: Readonly<Record<string, string>>;
  /** The error, or null. */
  readonly error: string | null;
}

export interface SpanBatch {
  readonly from: string;
  readonly spans: readonly Span[];
  /** Spans that found no room since the last batch. */
  readonly dropped: number;
}

/** The control plane has received a batch: the worker may send the next one. */
export interface Taken {
  readonly taken: string;
}
