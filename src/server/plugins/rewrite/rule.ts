/** A rule, and how it affects a query and its reply. */
import type { EdnsOption } from '../../wire/edns.ts';
import type { Query } from '../../transport/query.ts';
import type { NameText } from './name-text.ts';

/** A parsed `rewrite` line. */
export interface RewriteRule {
  /** True if the rules after this one are tried once it has been applied. */
  readonly continues: boolean;
  /** True if the rule applies to this query. This is called for every query, so it must be very fast. */
  fits(query: Query, text: NameText): boolean;
  /** Changes the query, or registers changes to its reply. Returns false if there was nothing to do. */
  apply(turn: RewriteTurn): boolean;
  /** Code of an EDNS option that is allowed in the reply to the client (CoreDNS's "supported options"). */
  readonly optionCode?: number;
  /** True if clients with the same question cause different upstream queries. */
  readonly personal?: boolean;
}

/** A change to a reply. Reply rules are applied in reverse, starting with that of the last query rule. */
export type ReplyRule =
  /** The names of records, or the names in the data of types with a target. */
  | { readonly kind: 'owner' | 'value'; readonly map: (name: string) => string }
  | { readonly kind: 'ttl'; readonly least: number; readonly most: number }
  | { readonly kind: 'rcode'; readonly from: number; readonly to: number }
  /** Replaces a CNAME's target, where the answer continues. Null leaves it unchanged. */
  | { readonly kind: 'target'; readonly map: (name: string) => string | null }
  /** Reverts the change to an option; `before` is null if there was no such option. */
  | { readonly kind: 'option'; readonly code: number; readonly before: Uint8Array | null };

export interface RewriteTurn {
  /** The current query, without any changes to its options. */
  readonly query: Query;
  readonly options: readonly EdnsOption[];
  /** Renames the query. If the name is invalid, rewriting ends with SERVFAIL. */
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
