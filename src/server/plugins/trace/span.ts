/** Spans, the parts of a trace. Plain data, because they are sent from the workers to the control plane. */

/** A part of a query's path: all of it, or one plugin's part. */
export interface Span {
  /** The trace ID, 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The enclosing span, or null for the first. */
  readonly parent: string | null;
  readonly name: string;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly tookMs: number;
  /** Tags by name, only for the first span. */
  readonly tags: Readonly<Record<string, string>>;
  /** The error, or null. */
  readonly error: string | null;
}

export interface SpanBatch {
  readonly from: string;
  readonly spans: readonly Span[];
  /** Number of spans dropped for lack of room since the last batch. */
  readonly dropped: number;
}

/** Confirms that the control plane has received a batch, so the worker may send the next one. */
export interface Taken {
  readonly taken: string;
}
