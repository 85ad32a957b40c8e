/** A rule, and its effects on a query and its reply. */
import type { EdnsOption } from '../../wire/edns.ts';
import type { Query } from '../../transport/query.ts';
import type { NameText } from './name-text.ts';

/** A parsed `rewrite` line. */
export interface RewriteRule {
  /** True if the following rules are tried after this one was applied. */
  readonly continues: boolean;
  /** True if the rule applies to this query. Called for every query, so it must be very fast. */
  fits(query: Query, text: NameText): boolean;
  /** Changes the query, or registers changes to its reply. Returns false if there was nothing to do. */
  apply(turn: RewriteTurn): boolean;
  /** Code of an EDNS option that may be in the reply to the client (CoreDNS's "supported options"). */
  readonly optionCode?: number;
  /** True if the upstream query differs between clients with the same question. */
  readonly personal?: boolean;
}

/** A change to a reply. Reply rules are applied in the reverse order of their query rules. */
export type ReplyRule =
  /** Names of records, or names in the data of types with a target. */
  | { readonly kind: 'owner' | 'value'; readonly map: (name: string) => string }
  | { readonly kind: 'ttl'; readonly least: number; readonly most: number }
  | { readonly kind: 'rcode'; readonly from: number; readonly to: number }
  /** Replaces a CNAME's target, where the answer continues; null leaves it unchanged. */
  | { readonly kind: 'target'; readonly map: (name: string) => string | null }
  /** Reverts the change to an option; null if there was none. */
  | { readonly kind: 'option'; readonly code: number; readonly before: Uint8Array | null };

export interface RewriteTurn {
  /** The current query, without the changes to its options. */
  readonly query: Query;
  readonly options: readonly EdnsOption[];
  /** Renames the query; an invalid name ends the rewriting with SERVFAIL. */
  rename(name: string): void;
  retype(type: number, qclass: number): void;
  setOptions(options: readonly EdnsOption[]): void;
  sendOption(code: number): void;
  addReplyRules(rules: readonly ReplyRule[]): void;
}

/** An invalid rule, in CoreDNS's wording. */
export class RuleError extends Error {
  override readonly name = 'RuleError';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
