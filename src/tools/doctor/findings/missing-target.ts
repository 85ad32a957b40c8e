/** SRV records whose target is a host that does not exist. */
import { addressTypes } from '../../../server/wire/iana.ts';
import type { Observations } from '../observe/observations.ts';
import { noOutcomes, addOutcomes, type Outcomes } from '../observe/outcomes.ts';
import type { ServiceTargets } from '../observe/service-targets.ts';
import { listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

interface Missing {
  readonly service: ServiceTargets;
  readonly targets: readonly string[];
  /** Other targets of the same name that have an address. */
  readonly fine: readonly string[];
  readonly denied: number;
}

export const missingTarget: FindingKind = {
  code: 'ND4058',
  title: 'An SRV record points to a host that does not exist',
  name: 'an SRV record whose target does not exist',
  inCapture(observed, claims) {
    const { owners } = observed.serviceTargets;
    if (owners.size === 0) return unknown('no SRV query was answered');
    const all = owners.list
      .map((service) => missingOf(observed, service))
      .filter(({ targets, denied }) => targets.length > 0 && denied >= MIN_CASES)
      .toSorted((one, other) => other.denied - one.denied);
    const [worst] = all;
    if (worst === undefined) return excluded('no target of an SRV record is always denied');
    const names = new Set(all.flatMap(({ targets }) => targets));
    for (const name of names) claims.names.add(name);
    const { service, targets, fine, denied } = worst;
    const servers = [...service.servers];
    const several = targets.length > 1;
    return {
      subject: service.owner,
      severity: all.some((each) => each.fine.length === 0) ? 'critical' : 'warning',
      confidence: 0.95,
      seen: [
        ...all.map(
          (each) => `The SRV answers for ${each.service.owner} name ${listed(each.targets)}`,
        ),
        `${denied} queries for the ${several ? 'addresses of these hosts' : 'address of this host'} got NXDOMAIN, and none was answered.`,
        fine.length > 0 && `The other targets have an address: ${listed(fine)}`,
      ],
      why: 'The SRV records list a member that is gone: its pod or host was removed or renamed, and the list was left behind (a zone file, external-dns, a registry or an old Endpoints object), or a cache still has it. Programs that connect to every target report an unreachable member, and some fail.',
      fix: [
        `Remove ${listed(targets)} from the SRV records of ${service.owner}, or create ${several ? 'these hosts' : 'this host'} again.`,
        'If the name is a headless Service, compare its EndpointSlices (hostname fields) with the pods that exist, and look for slices that were created by hand.',
      ],
      prove: `run ndots query ${service.owner} SRV @${servers[0]!}, then ndots query ${targets[0]!} @${servers[0]!}`,
      disproved: 'the target has an address a minute later (then the pod was only restarting)',
      hits: denied,
      exchanges: observed.affectedExchanges(({ name }) => names.has(name)),
      affected: [...service.clients],
    };
  },
};

function missingOf(observed: Observations, service: ServiceTargets): Missing {
  const all = [...service.targets].map((name) => ({ name, outcomes: outcomesOf(observed, name) }));
  const missing = all.filter(
    ({ outcomes: { nxdomain, found, nodata } }) => nxdomain > 0 && found + nodata === 0,
  );
  return {
    service,
    targets: missing.map(({ name }) => name),
    fine: all.flatMap(({ name, outcomes }) => (outcomes.found > 0 ? name : [])),
    denied: missing.reduce((sum, { outcomes }) => sum + outcomes.nxdomain, 0),
  };
}

/** The results of all queries for the addresses of a host. */
function outcomesOf({ names }: Observations, name: string): Outcomes {
  const sum = noOutcomes();
  for (const type of addressTypes) {
    const view = names.get(name, type);
    if (view !== undefined) addOutcomes(sum, view.outcomes);
  }
  return sum;
}
