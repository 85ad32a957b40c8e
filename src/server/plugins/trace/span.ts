/** Spans, which make up a trace. Plain data, because workers send them to the control plane. */

/** Part of a query's path, which is either all of it or what one plugin did. */
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
  /** Number of spans dropped since the last batch because there was no room. */
  readonly dropped: number;
}

/** Confirms that the control plane has received a batch, so that the worker may send the next one. */
export interface Taken {
  readonly taken: string;
}
