/** Refusals that depend on the client and the name, as with a network policy that has DNS rules. */
import { RCODE } from '../../../server/wire/iana.ts';
import { commonZone } from '../../../server/wire/within-zone.ts';
import { listed } from '../texts.ts';
import { MIN_RULED } from '../thresholds/errors.ts';
import { MIN_CASES, MOST, SPARED_SHARE } from '../thresholds/evidence.ts';
import { isAtOnce, type NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isServer } from './roles.ts';

/** A rule and the clients that it distinguishes; there are none if it depends only on the name. */
export interface RefusalRule {
  readonly seen: string;
  readonly denied: readonly string[];
  readonly allowed: readonly string[];
}

/** Detects a rule about names and clients in the refusals; null if there is no evidence for one. */
export function refusalRule(
  observed: Observations,
  refusedNames: readonly NameView[],
): RefusalRule | null {
  const {
    refusals,
    names: { list },
    domains,
  } = observed;
  // A limit refuses names that the same client gets answers for at other times.
  let [atTimes, refusedInAll] = [0, 0];
  for (const theirs of refusals.all)
    for (const { refused: count, isAnswered } of theirs) {
      refusedInAll += count;
      if (isAnswered) atTimes += count;
    }
  if (atTimes > SPARED_SHARE * refusedInAll) return null;
  const [denied, allowed] = [new Set<string>(), new Set<string>()];
  for (const { name, type } of refusedNames) {
    const all = refusals.of(type, name);
    const never = all.filter(({ refused: count, isAnswered }) => count >= MIN_RULED && !isAnswered);
    const always = all.filter(({ refused: count }) => count === 0);
    if (never.length === 0 || never.length + always.length < all.length) continue;
    if (always.length === 0) continue;
    for (const { client } of never) denied.add(client);
    for (const { client } of always) allowed.add(client);
  }
  const isOnlyOne = ![...denied].some((client) => allowed.has(client));
  const programs = [...allowed].filter((client) => !isServer(observed, client));
  if (denied.size > 0 && isOnlyOne)
    return {
      denied: [...denied],
      allowed: programs.length > 0 ? programs : [...allowed],
      seen: `Queries from ${listed([...denied])} are refused for names that ${listed(programs.length > 0 ? programs : [...allowed])} can resolve, so the refusals depend on the client and the name.`,
    };
  // A server with the cluster domain does not refuse its names because of a missing zone.
  const inside = refusedNames.filter(({ name }) => domains.isOfCluster(name));
  const isSteady = refusedNames.every(({ outcomes: { found, nodata } }) => found + nodata === 0);
  const never = list.filter(
    ({ name, outcomes }) =>
      domains.isOfCluster(name) && outcomes.found > 0 && outcomes.refused === 0,
  );
  const many = new Set(inside.map(({ name }) => name));
  if (isSteady && inside.length === 0) return ruleOfNames(observed, refusedNames);
  if (!isSteady || many.size < MIN_CASES || never.length === 0) return null;
  const repeated = inside.filter(({ outcomes }) => outcomes.refused >= MIN_RULED);
  if (repeated.length < MIN_CASES) return null;
  return {
    ...{ denied: [], allowed: [] },
    seen: `The refusals depend on the name, even within the cluster’s domain. ${listed([...many])} never get an answer, while ${listed(never.map(({ name }) => name))} always ${never.length === 1 ? 'does' : 'do'}.`,
  };
}

/**
 * External names of several zones that are always refused at once, too soon for an upstream, while
 * others are answered: a list of names decides. Otherwise null.
 */
function ruleOfNames(
  { affected, names: { list }, domains }: Observations,
  refusedNames: readonly NameView[],
): RefusalRule | null {
  const ruled = refusedNames.filter(({ outcomes }) => outcomes.refused >= MIN_RULED);
  const denied = [...new Set(ruled.map(({ name }) => name))];
  const fine = new Set(
    list.flatMap(({ name, outcomes }) =>
      outcomes.found > 0 && outcomes.refused === 0 && !domains.isOfCluster(name) ? name : [],
    ),
  );
  const refused = affected
    .flatMap(({ exchanges }) => exchanges)
    .filter(({ rcode, name }) => rcode === RCODE.REFUSED && denied.includes(name));
  if (denied.length < 2 || fine.size === 0 || refused.length < MIN_CASES) return null;
  // Names of one zone may be those of a lame delegation.
  if (denied.reduce(commonZone).split('.').length > 2) return null;
  if (refused.filter(isAtOnce).length < MOST * refused.length) return null;
  return {
    ...{ denied: [], allowed: [] },
    seen: `The refusals depend on the name: ${listed(denied)} are always refused, within about a millisecond, so that no upstream was asked. Other external names (${listed([...fine])}) are answered, so the server does forward.`,
  };
}

/**
 * Shows that the refused queries reach no DNS pod, while other clients’ queries do, so a proxy on
 * the path answers them.
 */
export function proxyText(
  { affected, clients }: Observations,
  { denied, allowed }: RefusalRule,
): readonly string[] {
  const translated = allowed.some((client) => (clients.get(client)?.translated ?? 0) >= MIN_CASES);
  const refused = affected
    .flatMap(({ exchanges }) => exchanges)
    .filter(({ client, rcode }) => rcode === RCODE.REFUSED && denied.includes(client.address));
  if (!translated || refused.length < MIN_CASES) return [];
  if (refused.some(({ hops }) => hops.length > 0)) return [];
  const [{ server }] = refused as [(typeof refused)[number]];
  return [
    `The refused queries to ${server.address} reach no DNS pod, while those from ${listed(allowed)} do. A DNS proxy on the node of ${listed(denied)} answers them itself.`,
  ];
}
