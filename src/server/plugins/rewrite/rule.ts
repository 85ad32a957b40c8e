/** A rule, and its effects on a query and its reply. */
import type { EdnsOption } from '../../wire/edns.ts';
import type { Query } from '../../transport/query.ts';
import type { NameText } from './name-text.ts';

/** One line of `rewrite`, understood. */
export interface RewriteRule {
  /** True if the following rules are tried after this one was applied. */
  readonly continues: boolean;
  /**
   * True if the rule is about this query. Asked for every query, so it must cost next to nothing.
   */
  fits(query: Query, text: NameText): boolean;
  /**
   * Changes the query, or says what becomes of its reply. False: there was nothing to do after all.
   */
  apply(turn: RewriteTurn): boolean;
  /** Codes of EDNS options that may be in the reply to the client (CoreDNS's "supported options"). */
  readonly optionCode?: number;
  /** True if the query that it sends upstream differs between clients with the same question. */
  readonly personal?: boolean;
}

/**
 * A change of a reply. Reply rules are applied in the reverse order of the rules of their queries.
 */
export type ReplyRule =
  /** Names of records, or names in the data of types that are named after their target. */
  | { readonly kind: 'owner' | 'value'; readonly map: (name: string) => string }
  | { readonly kind: 'ttl'; readonly least: number; readonly most: number }
  | { readonly kind: 'rcode'; readonly from: number; readonly to: number }
  /** Another target for a CNAME, at which the answer continues; null: not this one. */
  | { readonly kind: 'target'; readonly map: (name: string) => string | null }
  /** Reverts the change of an option; null: it was not there. */
  | { readonly kind: 'option'; readonly code: number; readonly before: Uint8Array | null };

export interface RewriteTurn {
  /** The current query, without the changes to its options. */
  readonly query: Query;
  readonly options: readonly EdnsOption[];
  /** Gives the query another name; an invalid one ends the rewriting with SERVFAIL. */
  rename(name: string): void;
  retype(type: number, qclass: number): void;
  setOptions(options: readonly EdnsOption[]): void;
  sendOption(code: number): void;
  addReplyRules(rules: readonly ReplyRule[]): void;
}

/** A line that is not a rule, in CoreDNS's words. */
export class RuleError extends Error {
  override readonly name = 'RuleError';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
