/** Names of which the replies alternate between existence and NXDOMAIN, at one address. */
import { addressTypes, TYPE } from '../../../server/wire/iana.ts';
import type { Claims } from './claims.ts';
import { comesAndGoes } from './comes-and-goes.ts';
import { serveTheSame } from './roles.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isDeniedAnew, isRemembered, isWithoutTtl } from './remembered-denial.ts';
import { STEADY_REPLIES } from '../thresholds/search.ts';

/** Names with alternating replies. `both` lists those for which no type is steady. */
export interface MixedNames {
  readonly mixed: readonly string[];
  readonly both: readonly string[];
}

/** The names whose existence alternates, and not because they came, went or were asked elsewhere. */
export function mixedNames(observed: Observations, claims: Claims): MixedNames {
  const mixed = observed.names.list.flatMap((a) => {
    if (a.type !== TYPE.A || claims.names.has(a.name)) return [];
    const aaaa = observed.names.get(a.name, TYPE.AAAA);
    if (aaaa === undefined || comesAndGoes(a)) return [];
    const exists = (view: typeof a): number => view.outcomes.found + view.outcomes.nodata;
    // Each type has been both: a name that came or went changes once.
    const fro = [a, aaaa].some(
      (view) =>
        exists(view) > 0 &&
        view.outcomes.nxdomain > 0 &&
        view.firstNegativeMs < view.lastFoundMs &&
        view.firstFoundMs < view.lastNegativeMs,
    );
    return fro && !isNew(observed, [a, aaaa]) && !byChoice(observed, [a, aaaa]) ? [a.name] : [];
  });
  const both = mixed.filter((name) => !isOfOneType(observed, name));
  return { mixed, both };
}

/** True if one type of the name is denied at times, and the other one always or never. */
function isOfOneType({ names }: Observations, name: string): boolean {
  return addressTypes.some((type) => {
    const { found, nodata, nxdomain } = names.get(name, type)!.outcomes;
    return found + nodata + nxdomain >= STEADY_REPLIES && (found + nodata === 0 || nxdomain === 0);
  });
}

/** True if caches remember that the one is missing, and no reply says so afresh. */
function isNew(observed: Observations, views: readonly NameView[]): boolean {
  return (
    views.some((view) => isRemembered(observed, view)) &&
    !views.some((view) => !isWithoutTtl(observed, view) && isDeniedAnew(view))
  );
}

/** True if each server gives one answer, and different answers come from different servers. */
function byChoice(observed: Observations, views: readonly NameView[]): boolean {
  const having = new Set<string>();
  const lacking = new Set<string>();
  for (const { servers } of views)
    for (const [server, { found, nodata, nxdomain }] of servers) {
      if (found + nodata > 0) having.add(server);
      if (nxdomain > 0) lacking.add(server);
    }
  return [...having].every((one) =>
    [...lacking].every((other) => one !== other && !serveTheSame(observed, one, other)),
  );
}

/** The number of names whose A and AAAA were compared and agree. */
export function pairsText({ names }: Observations): string {
  const both = names.list.filter(
    ({ type, name }) => type === TYPE.A && names.get(name, TYPE.AAAA) !== undefined,
  ).length;
  return `A and AAAA replies agree about whether ${both} names exist`;
}
