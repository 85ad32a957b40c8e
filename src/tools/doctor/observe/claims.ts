/**
 * Records the losses that findings have explained, so that later, more general ones explain only
 * the rest.
 */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from './observations.ts';
import { SAME_MOMENT_MS } from '../thresholds/evidence.ts';

/** A constant stream of new names below one domain. */
export interface NameFlood {
  readonly domain: string;
  readonly names: number;
  /** The address that sent most of them. */
  readonly client: string;
  /** True if that address passes on the queries of a client that is not in the capture. */
  readonly isPassedOn: boolean;
  /** True if many of the names exist, so that a program visits them. */
  readonly isReal: boolean;
  readonly losses: readonly SeenExchange[];
}

/** Lost queries that are explained. */
export class Claims {
  readonly #explained = new Set<SeenExchange>();
  readonly #observed: Observations;
  #open: readonly SeenExchange[] | null = null;
  #byServer: ByServer | null = null;
  #explainedByServer: ByServer | null = null;

  constructor(observed: Observations) {
    this.#observed = observed;
  }

  /** Lost queries that no rule has explained so far. */
  get open(): readonly SeenExchange[] {
    this.#open ??= this.#observed.losses.filter((loss) => !this.#explained.has(loss));
    return this.#open;
  }

  /** Of these, those to this server, or to one behind it. */
  openTo(server: string): readonly SeenExchange[] {
    this.#byServer ??= byServer(this.open);
    return this.#byServer.get(server) ?? [];
  }

  /** Servers that do not accept TCP connections from DNS clients. */
  readonly withoutTcp: Set<string> = new Set();

  /** Lost queries for external names at servers that return SERVFAIL for others, so they wait for an upstream. */
  readonly unanswered: SeenExchange[] = [];

  /** The flood of names in the capture; null if there is none. */
  flood: NameFlood | null = null;

  /**
   * Like `openTo`, but with the losses of a flood, which also have a cause: the rate exceeds a limit of the server or of
   * the path to it.
   */
  openOrFlooded(server: string): readonly SeenExchange[] {
    const ofFlood = (this.flood?.losses ?? []).filter(
      (loss) =>
        loss.server.address === server || loss.hops.some((hop) => hop.server.address === server),
    );
    return ofFlood.length === 0
      ? this.openTo(server)
      : [...new Set([...this.openTo(server), ...ofFlood])];
  }

  get explained(): readonly SeenExchange[] {
    return this.#observed.losses.filter((loss) => this.#explained.has(loss));
  }

  /** Of these, those to this server, or to one behind it. */
  explainedTo(server: string): readonly SeenExchange[] {
    this.#explainedByServer ??= byServer(this.explained);
    return this.#explainedByServer.get(server) ?? [];
  }

  /** Names below a domain that is known to fail, so their failures are expected. */
  readonly names: Set<string> = new Set();

  /** Answered addresses for which the cause of failing connections is known. */
  readonly addresses: Set<string> = new Set();

  /** Addresses of servers that forward to each other in a loop. Their limits on waiting queries are full because of it. */
  readonly looping: Set<string> = new Set();

  /** Servers for which the cause of late replies is known. */
  readonly late: Set<string> = new Set();

  /**
   * Times at which a server is known to have been silent, milliseconds since 1970. Late replies and
   * failures are expected then.
   */
  readonly silences: { readonly fromMs: number; readonly toMs: number }[] = [];

  /**
   * True if a server was silent when this was sent, or so shortly before that its failures are
   * still cached.
   */
  isOfSilence({ sentMs }: { readonly sentMs: number }, afterMs = 0): boolean {
    return this.silences.some(
      ({ fromMs, toMs }) => sentMs >= fromMs - SAME_MOMENT_MS && sentMs <= toMs + afterMs,
    );
  }

  isExplained(exchange: SeenExchange): boolean {
    return this.#explained.has(exchange);
  }

  take(exchanges: readonly SeenExchange[]): void {
    for (const exchange of exchanges) this.#explained.add(exchange);
    this.#open = null;
    this.#byServer = null;
    this.#explainedByServer = null;
  }
}

function serversOf({ server, hops }: SeenExchange): readonly string[] {
  return [server.address, ...hops.map((hop) => hop.server.address)];
}

type ByServer = ReadonlyMap<string, readonly SeenExchange[]>;

function byServer(losses: readonly SeenExchange[]): ByServer {
  const all = new Map<string, SeenExchange[]>();
  for (const loss of losses)
    for (const address of serversOf(loss)) {
      const theirs = all.get(address);
      if (theirs === undefined) all.set(address, [loss]);
      else if (theirs.at(-1) !== loss) theirs.push(loss);
    }
  return all;
}
