/** Service names that are queried without the cluster’s domain and so do not exist. */
import { RCODE } from '../../../server/wire/iana.ts';
import { withoutFinalDot } from '../observe/absolute-name.ts';
import type { Observations } from '../observe/observations.ts';
import type { SeenLookup } from '../../capture/pair/seen-exchange.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share } from '../texts.ts';
import { askedForCluster, isForwarder } from '../observe/roles.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { MAX_SERVICE_LABELS, MIN_LOOKALIKE_NAMES } from '../thresholds/search.ts';

/** Labels that cannot be a top-level domain, which has only letters or begins with `xn--`. */
const NO_TOP_LEVEL = /^(?!xn--).*[0-9-]/;
/** Top-level domains that private networks use (RFC 6761, RFC 6762, RFC 8375, and common practice). */
const PRIVATE_TOPS: ReadonlySet<string> = new Set(
  'local localhost localdomain test invalid example internal intranet private lan home corp arpa'.split(
    ' ',
  ),
);
/** The name and the namespace of a Service. */
const HOST = /^[a-z][a-z0-9-]*\.[a-z0-9][a-z0-9-]*\.$/;
/** A namespace that every cluster has. */
const DEFAULT_NAMESPACE = 'default';

/** Pods query `db.shop` as written and stop at its NXDOMAIN. */
export const lowNdots: FindingKind = {
  code: 'ND2011',
  title: 'Service names are queried without the cluster’s domain because ndots is too low',
  name: 'Service names without their domain',
  inCapture(observed, claims) {
    if (observed.lookups === 0) return unknown('no lookup was seen');
    const namespaces = namespacesOf(observed);
    const walked = walkedBy(observed);
    const strange = strangers(observed);
    const failed = observed.affected.filter(
      (lookup) =>
        isAskedAsWritten(lookup, observed) &&
        !claims.names.has(lookup.name) &&
        // A DNS server forwards names as its clients wrote them.
        !isForwarder(observed, lookup.client) &&
        !lookup.exchanges.every(({ server }) => strange.has(server.address)) &&
        !walked.has(`${lookup.client} ${withoutFinalDot(lookup.name)}`),
    );
    const rootless = withoutTop(observed);
    const sure = failed.filter(({ name }) => isOfService(name, namespaces));
    // Full Service names show which namespaces exist.
    const alike = failed.filter(
      ({ name, client }) =>
        (isLikeService(name) || rootless.has(withoutFinalDot(name))) &&
        (sure.some((each) => each.client === client) || sure.length === 0),
    );
    const all = [...new Set([...sure, ...alike])];
    const names = [...new Set(all.map(({ name }) => withoutFinalDot(name)))];
    const isMuch =
      sure.length > 0 ||
      names.length >= MIN_LOOKALIKE_NAMES ||
      names.every((each) => rootless.has(each));
    if (all.length < MIN_CASES || !isMuch) return excluded('no Service name is queried as written');
    const clients = [...new Set(all.map(({ client }) => client))];
    const lookups = clients.map((client) => observed.clients.get(client)?.lookups ?? 0);
    const theirs = lookups.reduce((sum, count) => sum + count, 0);
    const elsewhere = names.flatMap((name) => foundWithDomain(name, observed) ?? []);
    const dots = names.map((name) => name.split('.').length - 1);
    const fewest = Math.min(...dots);
    const ndots = Math.max(...dots) + 1;
    const searching = clients.filter((client) =>
      observed.affected.some((each) => each.client === client && each.candidates.length > 1),
    );
    for (const { name } of all) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: sure.length > 0 || elsewhere.length > 0 ? 0.93 : 0.8,
      seen: [
        `${share(all.length, theirs)} lookups from ${listed(clients)} queried Service names as written and stopped at the NXDOMAIN. The names are ${listed(names)}`,
        elsewhere.length > 0 &&
          `They exist with the cluster’s domain appended, as in ${listed(elsewhere)}`,
        searching.length > 0
          ? `A name with ${fewest} ${fewest === 1 ? 'dot' : 'dots'} is tried as written first, so these pods have ndots ${Math.max(1, fewest)} or lower.`
          : `These pods never appended a search domain, so ndots is ${Math.max(1, fewest)} or lower, or the search path is missing.`,
      ],
      why: 'A name with at least as many dots as ndots is tried as written first. musl (Alpine) stops at its NXDOMAIN, while glibc and Go continue with the search path. With ndots:1, the default outside Kubernetes, db.shop never becomes db.shop.svc.cluster.local. The same happens if dnsPolicy, dnsConfig or --dns-search omits the search path.',
      fix: [
        `Set ndots to ${ndots} or more in the pod (dnsConfig.options), or remove the option, so that kubelet writes 5. For example, run kubectl patch deployment NAME -p '{"spec":{"template":{"spec":{"dnsConfig":{"options":[{"name":"ndots","value":"${ndots}"}]}}}}}'`,
        `Or write these names in full: ${names[0]!.replace(/\.svc$/, '')}.svc.cluster.local.`,
        'Check that the pod’s /etc/resolv.conf has the cluster’s search domains (dnsPolicy: ClusterFirst).',
      ],
      prove: `ndots trace ${names[0]!} --client musl,glibc --from POD`,
      disproved: 'the pod’s /etc/resolv.conf has ndots:5 and the cluster’s search domains',
      exchanges: all.flatMap(({ exchanges }) => exchanges),
      affected: clients,
    };
  },
};

/**
 * Servers that deny cluster names which others have: their clients have the resolv.conf of a node,
 * and its ndots and search path are a consequence (ND2007).
 */
function strangers(observed: Observations): ReadonlySet<string> {
  const { found, other } = askedForCluster(observed);
  return new Set(found.size === 0 ? [] : [...other].filter((server) => !found.has(server)));
}

/** Clients and the names that they tried with a search domain appended. */
function walkedBy({ affected, domains }: Observations): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { client, candidates } of affected)
    for (const each of candidates) {
      const domain = domains.domainOf(each);
      if (domain !== null) found.add(`${client} ${each.slice(0, -domain.length - 1)}`);
    }
  return found;
}

/** True if a lookup queried only one name, of a few labels, that does not exist. */
function isAskedAsWritten(
  { candidates, exchanges, name }: SeenLookup,
  { domains }: Observations,
): boolean {
  const labels = withoutFinalDot(name).split('.').length;
  return (
    candidates.length === 1 &&
    labels >= 2 &&
    labels <= MAX_SERVICE_LABELS &&
    !domains.isOfCluster(name) &&
    domains.domainOf(name) === null &&
    exchanges.every(({ rcode }) => rcode === RCODE.NXDOMAIN)
  );
}

/** True for `db.shop.svc`, and for `db.shop` where a namespace `shop` exists. */
function isOfService(name: string, namespaces: ReadonlySet<string>): boolean {
  const labels = withoutFinalDot(name).split('.');
  return labels.at(-1) === 'svc' || (labels.length === 2 && namespaces.has(labels[1]!));
}

/** True for a name of two labels whose last one is not a top-level domain. */
function isLikeService(name: string): boolean {
  const labels = withoutFinalDot(name).split('.');
  return labels.length === 2 && NO_TOP_LEVEL.test(labels[1]!);
}

/**
 * Two-label names that the root denied and whose last label is not a top-level domain that private
 * networks use.
 */
function withoutTop({ replyFaults }: Observations): ReadonlySet<string> {
  return new Set(
    replyFaults.rootDenials.list.flatMap(({ name }) => {
      const labels = withoutFinalDot(name).split('.');
      return labels.length === 2 && !PRIVATE_TOPS.has(labels[1]!) && HOST.test(name)
        ? labels.join('.')
        : [];
    }),
  );
}

/** Namespaces found in Service names and search domains. */
function namespacesOf({ names, domains, affected }: Observations): ReadonlySet<string> {
  const found = new Set([DEFAULT_NAMESPACE]);
  for (const name of [
    ...names.list.flatMap((each) => (each.outcomes.found > 0 ? each.name : [])),
    ...[...domains.all].map((domain) => `.${domain}`),
    ...affected.map((each) => each.name),
  ]) {
    const labels = withoutFinalDot(name).split('.');
    const at = labels.indexOf('svc');
    if (at >= 1 && labels[at - 1] !== '') found.add(labels[at - 1]!);
  }
  return found;
}

/** The name with the cluster domain appended, if a client resolved it; null otherwise. */
function foundWithDomain(name: string, { names }: Observations): string | null {
  const stem = `${name.replace(/\.svc$/, '')}.svc.`;
  const view = names.list.find((each) => each.outcomes.found > 0 && each.name.startsWith(stem));
  return view?.name ?? null;
}
