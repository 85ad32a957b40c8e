/** Evidence from text: conntrack counters, kernel messages, CoreDNS metrics. */

/** Patterns of lines, each with its counter. Patterns are linear. */
const patterns: readonly (readonly [CountedEvent, RegExp])[] = [
  ['tableFull', /nf_conntrack: (?:nf_conntrack: )?table full, dropping packet/],
  ['neighbourOverflow', /neighbou?r(?:: \S+| table:?| ) ?(?:neighbor )?table overflow/i],
  ['badChecksum', /UDP: bad checksum/],
  ['oomKilled', /(?:OOMKilled|Out of memory: Killed process|oom-kill:)/],
  ['loopDetected', /plugin\/loop: Loop \(/],
  ['lameduck', /plugin\/health: Going into lameduck mode/],
];

/** Counters of `conntrack -S`, `sysctl` and metrics, whose values are numbers in the line. */
const values: readonly (readonly [CountedEvent, RegExp])[] = [
  ['insertFailed', /\binsert_failed=(\d{1,15})/],
  ['clashResolve', /\bclash_resolve=(\d{1,15})/],
  ['conntrackDrop', /\bdrop=(\d{1,15})/],
  ['conntrackCount', /nf_conntrack_count ?[=:]? ?(\d{1,15})/],
  ['conntrackMax', /nf_conntrack_max ?[=:]? ?(\d{1,15})/],
  ['linkLocalExceeded', /linklocal_allowance_exceeded:?\s+(\d{1,15})/],
  ['trackingExceeded', /conntrack_allowance_exceeded:?\s+(\d{1,15})/],
  ['concurrentRejects', /^coredns_forward_max_concurrent_rejects_total(?:\{[^}]*\})? (\d{1,15})/],
  ['shedDropped', /^coredns_shed_dropped_total(?:\{[^}]*\})? (\d{1,15})/],
  ['setupErrors', /^coredns_nodecache_setup_errors_total(?:\{[^}]*\})? (\d{1,15})/],
  [
    'healthcheckFailures',
    /^coredns_(?:forward|proxy)_healthcheck_failures_total(?:\{[^}]*\})? (\d{1,15})/,
  ],
];

export type CountedEvent =
  | 'tableFull'
  | 'neighbourOverflow'
  | 'badChecksum'
  | 'oomKilled'
  | 'loopDetected'
  | 'lameduck'
  | 'insertFailed'
  | 'clashResolve'
  | 'conntrackDrop'
  | 'conntrackCount'
  | 'conntrackMax'
  | 'linkLocalExceeded'
  | 'trackingExceeded'
  | 'concurrentRejects'
  | 'shedDropped'
  | 'setupErrors'
  | 'healthcheckFailures';

export class Counters {
  readonly #found = new Map<CountedEvent, number>();
  lines: number = 0;

  /** @returns whether the line was of one of these */
  line(text: string): boolean {
    let known = false;
    for (const [counter, pattern] of patterns)
      if (pattern.test(text)) known = this.#add(counter, 1);
    for (const [counter, pattern] of values) {
      const value = pattern.exec(text)?.[1];
      if (value !== undefined) known = this.#add(counter, Number(value));
    }
    if (known) this.lines++;
    return known;
  }

  /** Null if no line has it. (Zero is a value.) */
  get(counter: CountedEvent): number | null {
    return this.#found.get(counter) ?? null;
  }

  #add(counter: CountedEvent, value: number): true {
    this.#found.set(counter, (this.#found.get(counter) ?? 0) + value);
    return true;
  }
}
