/** What a check may do to the world: ask a server, and look a name up as a client does. The real one is `system-network.ts`. */
import type { Client } from '../resolver/client.ts';
import type { LookupRun } from '../resolver/run.ts';
import type { Message } from '../wire/message.ts';

/** Where queries go. */
export interface ProbeServer {
  /** IP address. */
  readonly host: string;
  readonly port: number;
}

/** One question of a check. */
export interface ProbeQuestion {
  /** Absolute. */
  readonly name: string;
  /** Number of the type. */
  readonly type: number;
  /** The largest datagram that the client takes, in an OPT record; null: no EDNS, so 512 bytes. */
  readonly edns: number | null;
}

/** How questions are asked. */
export interface AskTerms {
  readonly protocol: 'udp' | 'tcp';
  /** Source port; 0: a fresh one. */
  readonly sourcePort: number;
  /** Wait for each try. */
  readonly timeoutMs: number;
  readonly tries: number;
}

/** What became of one question. */
export interface ProbeResult {
  readonly reply: Message | null;
  /** Bytes of the reply. */
  readonly size: number;
  /** From the sending of the try that was answered to its reply; null without one. */
  readonly tookMs: number | null;
  /** Queries that were sent. */
  readonly sent: number;
  /** Of those sent, the ones that nobody answered. */
  readonly lost: number;
  /** Why there is no reply, for a person; null if there is one. */
  readonly failure: string | null;
}

/** The network of checks. Nothing here rejects: what fails is a result. */
export interface ProbeNetwork {
  /** Asks all questions at once from one socket; the results are in their order. */
  ask(
    server: ProbeServer,
    questions: readonly ProbeQuestion[],
    terms: AskTerms,
  ): Promise<readonly ProbeResult[]>;
  /** Looks a name up as this client does, at a server, with these settings of resolv.conf besides `nameserver`. */
  lookup(
    client: Client,
    name: string,
    server: ProbeServer,
    settings: { readonly search: readonly string[]; readonly ndots: number },
  ): Promise<LookupRun>;
}
