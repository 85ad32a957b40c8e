/** What to do to a request instead of, or before, answering it. */
export type Fault =
  /** Answer with this status; a Status object is the body unless one is given. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly reason?: string;
    }
  /** Cut the connection: at once, or after so many bytes of the body. */
  | { readonly kind: 'drop'; readonly afterBytes?: number }
  /** Accept the request and never answer. */
  | { readonly kind: 'hang' }
  /** Answer after a while. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** Send the first bytes of the right body and then nothing more. */
  | { readonly kind: 'stall'; readonly afterBytes: number }
  /** Answer 200 with a body that is no JSON. */
  | { readonly kind: 'garbage' };

export interface FaultRule {
  /** Plural of the resource, e.g. `services`, or `version`; absent = all. */
  readonly resource?: string;
  readonly verb?: Verb;
  /** How many requests it meets; absent = until it is lifted. */
  readonly times?: number;
  readonly fault: Fault;
}

export type Verb = 'list' | 'watch' | 'get' | 'create' | 'update' | 'patch' | 'delete';

/** The faults in force, first come first served. */
export class Faults {
  #rules: { rule: FaultRule; left: number }[] = [];

  /** Puts a rule in force; the returned function lifts it. */
  add(rule: FaultRule): () => void {
    const entry = { rule, left: rule.times ?? Infinity };
    this.#rules.push(entry);
    return () => {
      this.#rules = this.#rules.filter((other) => other !== entry);
    };
  }

  clear(): void {
    this.#rules = [];
  }

  /** The fault that meets this request, used up by one. */
  take(resource: string, verb: Verb): Fault | null {
    for (const entry of this.#rules) {
      const { rule } = entry;
      if (rule.resource !== undefined && rule.resource !== resource) continue;
      if (rule.verb !== undefined && rule.verb !== verb) continue;
      if (--entry.left <= 0) this.#rules = this.#rules.filter((other) => other !== entry);
      return rule.fault;
    }
    return null;
  }
}
