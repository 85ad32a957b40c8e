/** SERVFAIL only for cluster names, because the server has no cluster objects. */
import { TYPE } from '../../../server/wire/iana.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { dnsSelectorOf, podAt } from '../cluster/facts.ts';
import type { Claims } from '../observe/claims.ts';
import { failedExchanges } from '../observe/failed-queries.ts';
import type { Observations } from '../observe/observations.ts';
import { addOutcomes, answered, noOutcomes, type Outcomes } from '../observe/outcomes.ts';
import { listed, share } from '../texts.ts';
import { CLUSTER_SERVFAIL, MIN_FINE_REPLIES } from '../thresholds/errors.ts';
import { MANY_ERRORS, MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, notAsked, unknown, type FindingKind, type OptionalText } from './finding.ts';

export const clusterServfail: FindingKind = {
  code: 'ND5001',
  title: 'Cluster names fail because the DNS pods cannot reach the API server',
  name: 'DNS pods without a connection to the API server',
  inCapture(observed, claims) {
    const { inside, outside, ofA, failing, fine, meanwhile } = clusterFailures(observed, claims);
    if (inside.asked === 0) return unknown('no cluster name was queried');
    if (inside.servfail < MANY_ERRORS || inside.servfail < CLUSTER_SERVFAIL.inside * inside.asked)
      return excluded('cluster names are answered');
    if (ofA.asked >= MIN_CASES && ofA.servfail === 0)
      return excluded('only AAAA fails for cluster names');
    if (
      outside.servfail > CLUSTER_SERVFAIL.outside * outside.asked + 1 ||
      (outside.servfail > 1 && meanwhile.servfail > CLUSTER_SERVFAIL.inside * meanwhile.asked)
    )
      return excluded('external names fail as well');
    // A server without its lists cannot answer any cluster name.
    if (fine > failing)
      return excluded(
        `${fine} of ${fine + failing} cluster names never fail at that time, so failures depend on the name`,
      );
    for (const { name } of observed.names.list)
      if (observed.domains.isOfCluster(name)) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: outside.asked >= MANY_ERRORS ? 0.92 : 0.75,
      seen: [
        `${share(inside.servfail, inside.asked)} queries for cluster names got SERVFAIL.`,
        outside.asked > 0 && `For other names, it was ${share(outside.servfail, outside.asked)}.`,
        onlyServersText(observed),
      ],
      why: 'The DNS server answers, and its forwarding works, but it has no cluster objects. It was started while the API server could not be reached, or is still reading its lists, and does not know whether a Service exists.',
      fix: [
        'Determine why the DNS pods cannot reach the API server (its Service 10.96.0.1, certificates, network policy), with kubectl -n kube-system logs -l k8s-app=kube-dns.',
        'Set a readinessProbe on /ready, which keeps a pod that has not read its lists out of the Service.',
        'With ndots, set kubernetes { snapshot FILE }, which answers from the last state across restarts.',
      ],
      prove:
        'kubectl -n kube-system logs -l k8s-app=kube-dns | grep -i -e reflector -e "plugin/kubernetes"',
      disproved: 'the log shows synchronized lists and no API errors',
      exchanges: failedExchanges(observed, (name) => observed.domains.isOfCluster(name)),
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const failing = answers.replicas.filter(({ outcome }) => outcome === 'SERVFAIL');
    const alive = answers.replicas.filter(({ asked }) => asked.reply !== null);
    if (alive.length === 0) return unknown('no DNS pod answers');
    if (failing.length === 0) return excluded('cluster names are answered');
    const outside = answers.external.filter(({ outcome }) => outcome === 'NOERROR');
    return {
      severity: 'critical',
      confidence: outside.length > 0 ? 0.93 : 0.82,
      seen: [
        `${failing[0]!.name} gets SERVFAIL from ${failing.length} of ${alive.length} DNS pods: ${listed(failing.map(({ server }) => podAt(facts, server)))}.`,
        outside.length > 0 && `${outside[0]!.name} is answered.`,
      ],
      affected: failing.map(({ server }) => podAt(facts, server)),
      why: 'The server answers, but has no cluster objects. It was started while the API server could not be reached, is not allowed to list them, or is still reading.',
      fix: [
        `Check its log with kubectl -n ${facts.namespace} logs -l '${dnsSelectorOf(facts)}' | grep -i -e reflector -e plugin/kubernetes`,
        'Make sure that its ClusterRole allows list and watch on services, namespaces and endpointslices (and pods, with pods verified).',
      ],
      prove: `run ndots query ${failing[0]!.name} @${failing[0]!.server}; an Extended DNS Error may show the reason`,
      disproved: 'the log shows that the lists are synchronized',
    };
  },
};

/** Names the servers that fail for all cluster names while others fail for none. False if servers do not differ. */
function onlyServersText({ names, domains }: Observations): OptionalText {
  const sums = new Map<string, { answered: number; servfail: number }>();
  for (const { name, servers } of names.list)
    if (domains.isOfCluster(name))
      for (const [server, { found, nodata, nxdomain, servfail }] of servers) {
        const sum = sums.get(server) ?? { answered: 0, servfail: 0 };
        sum.answered += found + nodata + nxdomain;
        sum.servfail += servfail;
        sums.set(server, sum);
      }
  const failing = [...sums].filter(([, { answered, servfail }]) => servfail > 0 && answered === 0);
  const well = [...sums].filter(
    ([, { answered, servfail }]) => answered >= MIN_CASES && servfail === 0,
  );
  if (failing.length === 0 || failing.length + well.length < sums.size || well.length === 0)
    return false;
  const list = (all: typeof well): string => listed(all.map(([server]) => server));
  return `All of these replies came from ${list(failing)}, while ${list(well)} answered every query for cluster names.`;
}

interface ClusterFailures {
  /** The results of queries for cluster names, and for all others. */
  readonly inside: Outcomes;
  readonly outside: Outcomes;
  /** The results of A queries for cluster names, explained or not. */
  readonly ofA: Outcomes;
  /** Cluster names that fail, and those that were queried at the same time and never fail. */
  readonly failing: number;
  readonly fine: number;
  /** The results of queries for other names from the first to the last of these failures. */
  readonly meanwhile: Outcomes;
}

function clusterFailures(
  { names, domains, failed, ways }: Observations,
  claims: Claims,
): ClusterFailures {
  const [inside, outside, ofA] = [noOutcomes(), noOutcomes(), noOutcomes()];
  const failing = new Set<string>();
  const answers = new Map<string, number>();
  for (const { name, type, outcomes } of names.list) {
    const isOfCluster = domains.isOfCluster(name);
    if (isOfCluster && type === TYPE.A) addOutcomes(ofA, outcomes);
    if (claims.names.has(name)) continue;
    addOutcomes(isOfCluster ? inside : outside, outcomes);
    if (!isOfCluster) continue;
    if (outcomes.servfail > 0) failing.add(name);
    else answers.set(name, (answers.get(name) ?? 0) + answered(outcomes));
  }
  for (const { name } of failed) answers.delete(name);
  const fine = [...answers.values()].filter((count) => count >= MIN_FINE_REPLIES).length;
  const own = failed.filter(({ name }) => domains.isOfCluster(name) && !claims.names.has(name));
  const { fromMs, toMs } = sentSpan(own);
  const meanwhile = ways.between(fromMs, toMs).outside;
  return { inside, outside, ofA, failing: failing.size, fine, meanwhile };
}
