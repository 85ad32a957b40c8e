/** What a finding says, and what a rule is that looks for one. */
import type { Observations } from '../observe/observations.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';

/**
 * `critical`: programs fail or wait for seconds. `warning`: it costs, or will hurt. `info`: worth
 * knowing.
 */
export type Severity = 'critical' | 'warning' | 'info';

/** One thing that is wrong, in words that a person who does not know DNS well understands. */
export interface Finding {
  /** Never used again for something else, even if the rule goes. */
  readonly code: string;
  readonly title: string;
  /** What else tells it from other findings of its code: an upstream. */
  readonly subject?: string;
  readonly severity: Severity;
  /** From 0 to 1: how sure it is that this is the cause. */
  readonly confidence: number;
  /** What the capture shows: facts with numbers. */
  readonly seen: readonly string[];
  /** How this comes about. */
  readonly why: string;
  /** What to do, the best first. */
  readonly fix: readonly string[];
  /** What to run in order to see that it is so. */
  readonly prove: string;
  /** What would show that it is something else; empty for what is counted and not concluded. */
  readonly disproved: string;
  /** Exchanges that show it: who, and where to look. */
  readonly exchanges: readonly SeenExchange[];
  /** How many queries it hits, where only certain names fail: what hits many more comes first. */
  readonly hits?: number;
  /** How many queries of each client it is about, by address, where they are only counted. */
  readonly counted?: ReadonlyMap<string, number>;
  /** Whom it hits, where no exchange says so: pods, services, nodes. */
  readonly affected?: readonly string[];
  /** Where to look besides packets: parts of objects, names to ask for. */
  readonly places?: readonly string[];
}

/**
 * A finding, or why there is none: it was looked for and is not there, or the capture cannot tell.
 */
export type Verdict = Finding | { readonly not: 'excluded' | 'unknown'; readonly reason: string };

/** Looks for one thing. */
export interface Rule {
  readonly code: string;
  readonly title: string;
  /** For the closing list of what it is not. */
  readonly name: string;
  /** @returns a list where there may be several findings; an empty one says nothing */
  check(observed: Observations, claims: Claims): Verdict | readonly Finding[];
}

/**
 * Failures are remembered for five seconds (CoreDNS’s cache), and asked for again by then,
 * milliseconds.
 */
export const REMEMBERED_MS = 6000;
/** What is sent at the same moment, milliseconds. */
const AROUND_MS = 100;

/**
 * Which lost queries have been explained, so that a general rule does not explain them once more.
 */
export class Claims {
  readonly #explained = new Set<SeenExchange>();
  readonly #observed: Observations;
  #open: readonly SeenExchange[] | null = null;
  #byServer: ReadonlyMap<string, readonly SeenExchange[]> | null = null;

  constructor(observed: Observations) {
    this.#observed = observed;
  }

  /** Lost queries that no rule has explained yet. */
  get open(): readonly SeenExchange[] {
    this.#open ??= this.#observed.losses.filter((loss) => !this.#explained.has(loss));
    return this.#open;
  }

  /** Of these, those to this server, or to one behind it. */
  openTo(server: string): readonly SeenExchange[] {
    this.#byServer ??= byServer(this.open);
    return this.#byServer.get(server) ?? [];
  }

  /** Lost queries that a rule has explained. */
  get explained(): readonly SeenExchange[] {
    return this.#observed.losses.filter((loss) => this.#explained.has(loss));
  }

  /** Of these, those to this server, or to one behind it. */
  explainedTo(server: string): readonly SeenExchange[] {
    return this.explained.filter((loss) => serversOf(loss).includes(server));
  }

  /** Names below a domain that is known to fail: that they fail is no news. */
  readonly names: Set<string> = new Set();

  /** Servers of which it is known why they are late. */
  readonly late: Set<string> = new Set();

  /**
   * When a server is known to have been silent, milliseconds since 1970: that replies are late
   * then, or that it fails, is no news.
   */
  readonly silences: { readonly fromMs: number; readonly toMs: number }[] = [];

  /**
   * Whether a server was silent when this was sent, or so shortly before that its failures are
   * still in memory.
   */
  isOfSilence({ sentMs }: { readonly sentMs: number }, afterMs = 0): boolean {
    return this.silences.some(
      ({ fromMs, toMs }) => sentMs >= fromMs - AROUND_MS && sentMs <= toMs + afterMs,
    );
  }

  take(exchanges: readonly SeenExchange[]): void {
    for (const exchange of exchanges) this.#explained.add(exchange);
    this.#open = null;
    this.#byServer = null;
  }
}

/** The server that was asked, and those behind it. */
function serversOf({ server, hops }: SeenExchange): readonly string[] {
  return [server.address, ...hops.map((hop) => hop.server.address)];
}

function byServer(losses: readonly SeenExchange[]): ReadonlyMap<string, readonly SeenExchange[]> {
  const all = new Map<string, SeenExchange[]>();
  for (const loss of losses)
    for (const address of serversOf(loss)) {
      const theirs = all.get(address);
      if (theirs === undefined) all.set(address, [loss]);
      else if (theirs.at(-1) !== loss) theirs.push(loss);
    }
  return all;
}

/** It was looked for, with enough to see it by, and is not there. */
export function excluded(reason: string): Verdict {
  return { not: 'excluded', reason };
}

/** The capture cannot tell. */
export function unknown(reason: string): Verdict {
  return { not: 'unknown', reason };
}

/** Whether the verdict is a finding. */
export function isFinding(verdict: Verdict): verdict is Finding {
  return !('not' in verdict);
}

/** Of fewer a percentage says nothing. */
const PERCENT_LEAST = 10;

/** `12 of 340 (3.5 %)`, `2 of 7`. */
export function share(part: number, whole: number): string {
  if (whole < PERCENT_LEAST) return `${part} of ${whole}`;
  return `${part} of ${whole} (${percent(part, whole)})`;
}

/** `3.5 %`. */
export function percent(part: number, whole: number): string {
  const value = whole === 0 ? 0 : (100 * part) / whole;
  return `${value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** Of how many replies, read to their end, so few show something. */
export function shownBy(few: number, read: number): string {
  return `${few === 0 ? 'none' : few} of ${read} replies that were read to their end show${few > 1 ? '' : 's'} it`;
}

/** `a, b, c and 4 more`. */
export function listed(words: readonly string[], most = 3): string {
  const different = [...new Set(words)];
  const shown = different.slice(0, most).join(', ');
  return different.length > most ? `${shown} and ${different.length - most} more` : shown;
}

/** A sentence with its full stop, which the dot of a name at its end is as well. */
export function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`;
}

/** `03:07:20`, UTC. */
export function clock(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString().slice(11, 19) : '–';
}

/** Two times of day: with fractions of a second where they are less than two seconds apart. */
export function clocks(fromMs: number, toMs: number): readonly [from: string, to: string] {
  if (!Number.isFinite(fromMs) || !Number.isFinite(toMs) || toMs - fromMs >= 2000)
    return [clock(fromMs), clock(toMs)];
  const fine = (ms: number): string => new Date(ms).toISOString().slice(11, 23);
  return [fine(fromMs), fine(toMs)];
}

/** `0.4 ms`, `820 ms`, `5.0 s`. */
export function took(ms: number): string {
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
}

/** How often each key occurs in the list, the most frequent first. */
export function tally<T>(
  list: readonly T[],
  keyOf: (each: T) => string,
): readonly (readonly [string, number])[] {
  return [...Map.groupBy(list, keyOf)]
    .map(([key, { length }]) => [key, length] as const)
    .toSorted(([, one], [, other]) => other - one);
}

/** The keys that occur in the list, the most frequent first. */
export function keysOf<T>(list: readonly T[], keyOf: (each: T) => string): readonly string[] {
  return tally(list, keyOf).map(([key]) => key);
}
