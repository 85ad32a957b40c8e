/** ExternalName Services whose target's zone does not answer. */
import { addressTypes, RCODE } from '../../../server/wire/iana.ts';
import {
  latencyOf,
  isLost,
  sentSpan,
  type SeenExchange,
} from '../../capture/pair/seen-exchange.ts';
import { isFailure } from '../observe/outcomes.ts';
import { median } from '../observe/median.ts';
import type { Observations } from '../observe/observations.ts';
import { waitingForThese } from '../observe/consequences.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { MAX_FAILING_TARGETS, MIN_FOUND_NAMES, UPSTREAM_WAIT_MS } from '../thresholds/errors.ts';
import { LONG_WAIT_MS, MIN_CASES } from '../thresholds/evidence.ts';

interface Failing {
  readonly name: string;
  /** The target of its alias. Empty if no reply shows it. */
  readonly target: string;
  readonly exchanges: readonly SeenExchange[];
}

export const externalTarget: FindingKind = {
  code: 'ND4031',
  title: 'An ExternalName Service fails because its target’s zone does not answer',
  name: 'the target of an ExternalName Service',
  inCapture(observed, claims) {
    const { names, domains } = observed;
    const own = names.list.filter(
      ({ name }) => domains.isOfCluster(name) && !claims.names.has(name),
    );
    if (own.length === 0) return unknown('no cluster name was queried');
    const fine = new Set(
      own.flatMap(({ name, outcomes }) =>
        outcomes.found > 0 && outcomes.servfail === 0 ? name : [],
      ),
    );
    const failing = failingOf(observed, fine);
    const known = failing.filter(({ target }) => target !== '');
    const found = known.length > 0 ? known : failing;
    const exchanges = found.flatMap((each) => each.exchanges);
    if (
      found.length > MAX_FAILING_TARGETS ||
      fine.size < MIN_FOUND_NAMES ||
      exchanges.length < MIN_CASES
    )
      return excluded('no single Service name fails while others are answered');
    const { fromMs } = sentSpan(exchanges);
    const meanwhile = new Set(
      own.flatMap(({ name, lastFoundMs }) => (fine.has(name) && lastFoundMs > fromMs ? name : [])),
    );
    if (known.length === 0 && meanwhile.size < MIN_FOUND_NAMES)
      return excluded('no other Service name was answered while these failed');
    const targets = [...new Set(known.map(({ target }) => target))];
    const losses = lossesOf(targets, exchanges, claims, observed);
    const silent = [...new Set(losses.map(({ server }) => server.address))];
    claims.take(losses);
    claims.take(waitingForThese(claims, losses));
    claims.take(claims.open.filter(({ name }) => found.some((each) => each.name === name)));
    for (const each of [...found.map(({ name }) => name), ...targets]) claims.names.add(each);
    // A server that waits for the target is late for these names only.
    for (const { server, hops } of exchanges)
      for (const { address } of [server, ...hops.map((hop) => hop.server)])
        claims.late.add(address);
    const waits = exchanges.flatMap((each) => latencyOf(each) ?? []);
    const list = found.map(({ name }) => name);
    const [service = '', namespace = ''] = list[0]!.split('.');
    const lookedUp = losses.map(({ name }) => name);
    return {
      severity: 'critical',
      confidence: targets.length > 0 ? 0.95 : 0.88,
      seen: [
        `${exchanges.length} queries for ${listed(list)} failed (SERVFAIL or no reply), half of them after ${took(waits.length > 0 ? median(waits) : 0)} or more. During that time, ${meanwhile.size} other cluster ${meanwhile.size === 1 ? 'name was' : 'names were'} answered`,
        targets.length > 0
          ? `The replies contain a CNAME record: ${listed(found.map(({ name, target }) => `${name} points to ${target}`))}`
          : 'A DNS pod answers Service names from memory. It waits for another server only if a Service is an alias of an external name.',
        losses.length > 0 &&
          `${share(losses.length, observed.losses.length)} lost queries were sent to ${listed(silent)} for ${listed(lookedUp)}`,
      ],
      why: 'For an ExternalName Service, the cluster’s DNS answers with a CNAME record and looks up its target at an upstream. The target zone’s servers do not answer, so the DNS pod waits until it times out and then answers SERVFAIL. Other Services and other external names are not affected.',
      fix: [
        `Ask the owner of ${targets.length > 0 ? listed(targets) : 'the target'} why its name servers do not answer${silent.length > 0 ? ` (${listed(silent)})` : ''}. They may be down, or a firewall may drop packets from the cluster.`,
        'If the target has moved, correct the Service’s spec.externalName.',
        'Set a shorter time-out in forward, so that programs fail sooner.',
      ],
      prove: `run kubectl -n ${namespace} get service ${service} -o jsonpath={.spec.externalName}, then ndots query ${targets[0] ?? 'TARGET'} @${silent[0] ?? 'UPSTREAM'}`,
      disproved: 'the target’s own name servers answer queries from a DNS pod’s node',
      exchanges: [...exchanges, ...losses],
    };
  },
};

/** Cluster names that are never found and fail late, or whose failed reply contains an alias. */
function failingOf(observed: Observations, fine: ReadonlySet<string>): readonly Failing[] {
  const { domains, replyFaults, names } = observed;
  const failed = observed.affectedExchanges(
    (each) =>
      (isFailure(each) || isLost(each)) && domains.isOfCluster(each.name) && !fine.has(each.name),
  );
  return [...Map.groupBy(failed, ({ name }) => name)].flatMap(([name, exchanges]) => {
    const target = addressTypes
      .flatMap((type) => replyFaults.failingTargets.get(`${type} ${name}`)?.target ?? [])
      .find((each) => !domains.isOfCluster(each));
    const isFound = addressTypes.some((type) => (names.get(name, type)?.outcomes.found ?? 0) > 0);
    const late = exchanges.filter(
      (each) => each.rcode === RCODE.SERVFAIL && (latencyOf(each) ?? 0) >= LONG_WAIT_MS,
    );
    if (isFound || (target === undefined && late.length < MIN_CASES)) return [];
    return [{ name, target: target ?? '', exchanges }];
  });
}

/** Lost queries for these targets. If they are unknown, lost queries for external names sent while the Service's queries wait. */
function lossesOf(
  targets: readonly string[],
  waiting: readonly SeenExchange[],
  { open }: Claims,
  { domains }: Observations,
): readonly SeenExchange[] {
  if (targets.length > 0) return open.filter(({ name }) => targets.includes(name));
  const outside = open.filter(({ name }) => !domains.isOfCluster(name));
  const isAwaited = ({ sentMs }: SeenExchange): boolean =>
    waiting.some(
      (each) =>
        sentMs >= each.sentMs && sentMs <= (each.repliedMs ?? each.sentMs + UPSTREAM_WAIT_MS),
    );
  const byName = [...Map.groupBy(outside, ({ name }) => name).values()];
  return byName.filter((losses) => losses.every(isAwaited)).flat();
}
