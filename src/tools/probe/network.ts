/**
 * The network of a check: query a server, and look up a name like a client. `system-network.ts`
 * implements it.
 */
import type { Client } from '../resolver/client.ts';
import type { LookupRun } from '../resolver/run-lookup.ts';
import type { Message } from '../../server/wire/message.ts';

/** A server to ask. */
export interface ProbeServer {
  /** IP address. */
  readonly host: string;
  readonly port: number;
}

/** One question of a check. */
export interface ProbeQuestion {
  /** An absolute name. */
  readonly name: string;
  readonly type: number;
  /** The UDP size offered in an OPT record; null: no EDNS, so 512 bytes. */
  readonly edns: number | null;
}

export interface AskTerms {
  readonly protocol: 'udp' | 'tcp';
  /** Source port; 0: a new one. */
  readonly sourcePort: number;
  /** Milliseconds to wait at each try. */
  readonly timeoutMs: number;
  readonly tries: number;
}

/** The outcome of one question. */
export interface ProbeResult {
  readonly reply: Message | null;
  /** Bytes of the reply. */
  readonly size: number;
  /** Milliseconds from sending the answered try to its reply; null without a reply. */
  readonly tookMs: number | null;
  /** The number of queries sent. */
  readonly sent: number;
  /** The number of those that got no reply. */
  readonly lost: number;
  /** Why there is no reply, as text; null if there is one. */
  readonly failure: string | null;
}

/** The network of checks. Nothing here rejects: a failure is a result. */
export interface ProbeNetwork {
  /** Asks all questions at the same time from one socket; the results are in the same order. */
  ask(
    server: ProbeServer,
    questions: readonly ProbeQuestion[],
    terms: AskTerms,
  ): Promise<readonly ProbeResult[]>;
  /** Looks up a name like this client, at one server, with these resolv.conf settings. */
  lookup(
    client: Client,
    name: string,
    server: ProbeServer,
    settings: { readonly search: readonly string[]; readonly ndots: number },
  ): Promise<LookupRun>;
}
