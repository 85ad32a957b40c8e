import type { Place } from '../base/problem.ts';
import type { Scheme } from '../wire/transports.ts';

/**
 * A parsed Corefile as plain data. Every node survives `structuredClone`, so the tree can be sent to worker threads,
 * which bind its directives again.
 */
export interface Corefile {
  /** The file as named on the command line. */
  readonly file: string;
  readonly blocks: readonly ServerBlock[];
  /** All files that were read, starting with the Corefile itself; `reload` watches them. */
  readonly files: readonly string[];
  /**
   * SHA-512 (hex) of the tokens. White space and comments do not affect it, but imported files and the environment do.
   */
  readonly fingerprint: string;
}

/** One server block: its addresses and its directives. */
export interface ServerBlock {
  readonly keys: readonly Key[];
  /** In file order; the same name may occur more than once. */
  readonly directives: readonly Directive[];
  readonly place: Place;
}

/** An address of a server block. A CIDR that is not on a label boundary produces several keys with the same `text`. */
export interface Key {
  /** As written, after environment substitution. */
  readonly text: string;
  readonly place: Place;
  readonly scheme: Scheme;
  /** Lower case and absolute; `.` is the root. */
  readonly zone: string;
  /** The port as written, or the scheme's default (for `dns`, the server's `-dns.port`). */
  readonly port: number;
}

/** A line in a server block, including the lines inside its braces. */
export interface Directive {
  /** The directive's current name; `at.text` is the name used in the file. */
  readonly name: string;
  readonly at: Token;
  readonly args: readonly Token[];
  /** Null if there are no braces. */
  readonly block: readonly Property[] | null;
}

/** A line inside a directive's braces, which may have braces of its own. */
export interface Property {
  readonly name: Token;
  readonly args: readonly Token[];
  readonly block: readonly Property[] | null;
}

export interface Token {
  /** After environment substitution, without quotes. */
  readonly text: string;
  readonly place: Place;
  readonly quoted: boolean;
}
