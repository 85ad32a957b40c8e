/**
 * The network interface for checks, which can query a server or look up a name as a client would. It is implemented in
 * `system-network.ts`.
 */
import type { Client } from '../resolver/client.ts';
import type { LookupRun } from '../resolver/run-lookup.ts';
import type { Message } from '../../server/wire/message.ts';

export interface ProbeServer {
  /** IP address. */
  readonly host: string;
  readonly port: number;
}

export interface ProbeQuestion {
  /** An absolute name. */
  readonly name: string;
  readonly type: number;
  /** The UDP size offered in an OPT record. Without EDNS it is null, which means 512 bytes. */
  readonly edns: number | null;
}

export interface AskTerms {
  readonly protocol: 'udp' | 'tcp';
  /** Source port; 0: a new one. */
  readonly sourcePort: number;
  /** Milliseconds to wait for each attempt. */
  readonly timeoutMs: number;
  readonly tries: number;
}

export interface ProbeResult {
  readonly reply: Message | null;
  /** The size of the reply in bytes. */
  readonly size: number;
  /** Milliseconds from sending the attempt that was answered until its reply. Null if there is no reply. */
  readonly tookMs: number | null;
  /** The number of queries sent. */
  readonly sent: number;
  /** The number that got no reply. */
  readonly lost: number;
  /** Describes why there is no reply. Null if there is one. */
  readonly failure: string | null;
}

/** The network used by checks. It never rejects, because a failure is a result. */
export interface ProbeNetwork {
  /** Sends all questions from one socket at once. The results are in the same order. */
  ask(
    server: ProbeServer,
    questions: readonly ProbeQuestion[],
    terms: AskTerms,
  ): Promise<readonly ProbeResult[]>;
  /** Looks up a name at one server in the same way as this client, with these resolv.conf settings. */
  lookup(
    client: Client,
    name: string,
    server: ProbeServer,
    settings: { readonly search: readonly string[]; readonly ndots: number },
  ): Promise<LookupRun>;
}
