/** DNS servers that do not cache answers, as their own queries or those of their clients show. */
import { busiestOf, type BusiestClient } from './busiest-client.ts';
import type { Observations } from './observations.ts';
import { isForwarder, queriesUpstreams } from './roles.ts';
import { MISSING_CACHE } from '../thresholds/answers.ts';
import { keysOf, listed, percent, share } from '../texts.ts';
import type { RepeatedName } from './valid-answers.ts';

/** A client that repeats queries for names whose earlier answers are still valid. */
export interface Repeating {
  readonly client: string;
  /** True if it is a DNS server; otherwise it may be a program. */
  readonly isServer: boolean;
  /** Queries to this server, and of these those that repeat a name. */
  readonly asked: number;
  readonly repeats: number;
  readonly names: readonly string[];
  /** The lowest TTL of these names, seconds. */
  readonly ttl: number;
}

/** Clients of this server most of whose queries are such repeats. */
export function repeatingClients(observed: Observations, server: string): readonly Repeating[] {
  const own = observed.askedAgain.whileValid.list.filter((each) => each.server === server);
  return [...Map.groupBy(own, ({ client }) => client)].flatMap(([client, all]) => {
    const often = all.filter(isOften);
    const repeats = sum(often);
    const asked = observed.clients.get(client)?.servers.get(server)?.asked ?? 0;
    if (often.length === 0 || repeats < MISSING_CACHE.share * asked) return [];
    return {
      ...{ client, asked, repeats },
      isServer: isDnsServer(observed, client),
      names: keysOf(often, ({ name }) => name),
      ttl: Math.min(...often.map((each) => each.ttl)),
    };
  });
}

/** A server that repeatedly fails for names although its earlier answer is still valid. */
export interface WithoutAnswers {
  readonly server: string;
  readonly failed: number;
  readonly answered: number;
  readonly names: readonly string[];
  readonly ttl: number;
}

/** Servers that do not cache, as their clients show: TTLs never count down, and names with a valid answer fail. */
export function serversWithoutAnswers({ askedAgain }: Observations): readonly WithoutAnswers[] {
  return [
    ...Map.groupBy(askedAgain.whileValid.list.filter(isOften), ({ server }) => server),
  ].flatMap(([server, all]) => {
    const failed = all.reduce((count, each) => count + each.failed, 0);
    const answered = all.reduce((count, each) => count + each.answered, 0);
    const lower = all.reduce((count, each) => count + each.lower, 0);
    if (failed < MISSING_CACHE.failed || lower > 0) return [];
    return {
      ...{ server, failed, answered },
      names: keysOf(all, ({ name }) => name),
      ttl: Math.min(...all.map((each) => each.ttl)),
    };
  });
}

/** The program that sends most queries for these names; null if there is none. */
export function busiestFor(observed: Observations, names: readonly string[]): BusiestClient | null {
  const wanted = new Set(names);
  const theirs = observed.askedAgain.whileValid.list.filter(
    ({ name, client }) => wanted.has(name) && !isDnsServer(observed, client),
  );
  const byClient = Map.groupBy(theirs, ({ client }) => client);
  return busiestOf([...byClient].map(([client, all]) => [client, sum(all)] as const));
}

/** Describes the program that sends most queries for these names. */
export function busiestText({ address, queries, all }: BusiestClient, seconds: number): string {
  return `${address} sends ${percent(queries, all)} of the programs’ queries for these names (${(queries / Math.max(1, seconds)).toFixed(0)} a second).`;
}

export function repeatingText({ client, repeats, asked, names, ttl }: Repeating): string {
  return `${share(repeats, asked)} queries from ${client} repeat a name whose earlier answer was still valid (TTL ${ttl} s): ${listed(names)}`;
}

function isDnsServer(observed: Observations, client: string): boolean {
  return isForwarder(observed, client) || queriesUpstreams(observed, client);
}

function isOften({ repeats, ttl, firstMs, lastMs }: RepeatedName): boolean {
  return (
    ttl >= MISSING_CACHE.ttl &&
    repeats >= MISSING_CACHE.repeats &&
    repeats >= (MISSING_CACHE.perSecond * (lastMs - firstMs)) / 1000
  );
}

function sum(all: readonly RepeatedName[]): number {
  return all.reduce((count, { repeats }) => count + repeats, 0);
}
