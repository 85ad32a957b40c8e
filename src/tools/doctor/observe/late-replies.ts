/** Late replies in slow lookups, their servers, and their names. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import { isCut } from '../../capture/pair/message-head.ts';
import {
  finalServer,
  latencyOf,
  type SeenExchange,
  type SeenLookup,
} from '../../capture/pair/seen-exchange.ts';
import { listed, sentence, took, tookFrom } from '../texts.ts';
import { LATE_MS, MIN_CASES, SPARED_SHARE } from '../thresholds/evidence.ts';
import type { Observations } from './observations.ts';
import { isFailure } from './outcomes.ts';

/** A log does not contain the server’s address. */
export const LOGGED = 'the server that wrote the log';

/** Slow lookups, including those whose names the capture has only in part. */
export function slowLookups({ affected, slowCut }: Observations): readonly SeenLookup[] {
  return [...affected, ...slowCut];
}

export function lateReplies(observed: Observations): readonly SeenExchange[] {
  return slowLookups(observed).flatMap(({ exchanges }) =>
    exchanges.filter((each) => (latencyOf(each) ?? 0) >= LATE_MS),
  );
}

/** The late replies of one server in slow lookups. */
export function lateFrom(address: string, observed: Observations): readonly SeenExchange[] {
  return lateReplies(observed).filter(({ server }) => server.address === address);
}

/**
 * Reports that all late replies are for external names while cluster names are quick; null if that
 * is not true.
 */
export function externalOnly(
  address: string,
  observed: Observations,
): { readonly text: string; readonly zone: string } | null {
  const { domains, servers } = observed;
  const late = lateFrom(address, observed);
  const names = [...new Set(late.map(({ name }) => name))];
  const inside = late.filter(({ name }) => domains.isOfCluster(name)).length;
  const seconds = servers.get(address)?.history ?? [];
  const own = seconds.reduce((sum, [, each]) => sum + each.own, 0);
  const ownMs = seconds.reduce((sum, [, each]) => sum + each.ownMs, 0) / Math.max(1, own);
  const failed = late.filter(isFailure).length;
  if (late.length === 0 || inside > SPARED_SHARE * late.length) return null;
  if (own < MIN_CASES || ownMs >= LATE_MS) return null;
  const times = late.map((each) => latencyOf(each)!).toSorted((one, other) => one - other);
  const common = names.length > 1 ? names.reduce(commonZone) : '';
  const zone = common.split('.').length > 2 ? common : '';
  const text = sentence(
    `Only external names are slow. ${own} replies for cluster names took ${took(ownMs)} on average, while ${late.length} others took ${tookFrom(times[0]!, times.at(-1)!)}${failed === 0 ? '' : `, and ${failed} of these got SERVFAIL`}. The slow ones${zone === '' ? '' : ` are all in ${zone} and`} include ${listed(names)}`,
  );
  return { text, zone };
}

/** The name whose reply from the server took longest, or else any name that was queried. */
export function lateName(address: string, observed: Observations): string {
  const replies = slowLookups(observed)
    .flatMap(({ exchanges }) => exchanges)
    .filter((each) => finalServer(each).address === address || each.server.address === address)
    .filter(({ name }) => !isCut(name))
    .toSorted((one, other) => (latencyOf(other) ?? 0) - (latencyOf(one) ?? 0));
  const [late = observed.names.list.find(({ name }) => !isCut(name))] = replies;
  return late?.name ?? 'NAME';
}
