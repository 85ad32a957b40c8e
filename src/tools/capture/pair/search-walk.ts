/** Decides which names can come from the same search path, to tell one call's exchanges from those of the next. */
import { isBelow } from '../../../server/wire/within-zone.ts';
import { isCut } from './message-head.ts';

/** The number of domains to remember. A cluster has a few, and one more for each namespace. */
const DOMAINS_MAX = 10_000;
/** The label before the cluster domain in service names. */
const SERVICES = 'svc.';

/**
 * A name as `stem` plus the appended domain: `api.stripe.com.` and `cluster.local.`. If a name is queried as written,
 * the domain is empty.
 */
export interface Step {
  readonly stem: string;
  readonly from: string;
  readonly to: string;
}

/** Learns search domains from searches in a capture. */
export class SearchDomains {
  readonly #known = new Set<string>();
  readonly #firstLabels = new Set<string>();
  /** Domains that followed a namespace's domain, each with the name. */
  readonly #maybe = new Map<string, string>();
  /** With a leading dot. */
  readonly #clusters = new Set(['.cluster.local.']);

  get all(): ReadonlySet<string> {
    return this.#known;
  }

  /** The longest known domain that contains the name, or null if there is none. */
  domainOf(name: string): string | null {
    for (let at = name.indexOf('.') + 1; at > 0; at = name.indexOf('.', at) + 1) {
      const domain = name.slice(at);
      if (this.#known.has(domain)) return domain;
    }
    return null;
  }

  /**
   * True if a name or domain belongs to the cluster. It does if it is under `cluster.local`, or under the domain whose
   * `svc` subdomain is in the pods' search path.
   */
  isOfCluster(name: string): boolean {
    for (const below of this.#clusters)
      if (name.endsWith(below) || (name.length === below.length - 1 && below.endsWith(name)))
        return true;
    return isCut(name) && [...this.#clusters].some((below) => beginsIn(name, below));
  }

  /**
   * The search path step from one name to the other, or null if there is none.
   * @param certain false if the domains are unknown but everything else matches
   */
  step(one: string, other: string): Step | null {
    let at = commonLabels(one, other);
    // If labels repeat, the stem may be shorter than the common part, so the longest is tried first.
    for (; at > 0; at = one.lastIndexOf('.', at - 2) + 1) {
      const from = one.slice(at);
      const to = other.slice(at);
      if (from === to) continue;
      const stem = one.slice(0, at);
      if (this.#follows(from, to) || this.#precedes(stem, from, to)) return { stem, from, to };
    }
    return null;
  }

  /**
   * True if a namespace's domain follows this domain for the second name, as in a dnsConfig list that has it first.
   * Otherwise, one name may be two lookups, `db.example.com.` and then `db` in the cluster.
   */
  #precedes(stem: string, from: string, to: string): boolean {
    if (!to.includes(`.${SERVICES}`) || !this.isOfCluster(to)) return false;
    // `platform.` and `platform.shop.svc.cluster.local.` have a longer stem.
    if (from === '' || this.isOfCluster(from) || to.startsWith(from)) return false;
    const first = this.#maybe.get(from);
    if (first === undefined && this.#maybe.size < DOMAINS_MAX) this.#maybe.set(from, stem);
    return first !== undefined && first !== stem;
  }

  /** True if there can be a search path step between two names of which at least one is truncated. */
  mayStep(one: string, other: string): boolean {
    if (one === other) return one !== '';
    // If one name is complete except for its type, it is the typed name.
    if (startsWithWhole(one, other) || startsWithWhole(other, one)) return true;
    let at = commonLabels(one, other);
    for (; at > 0; at = one.lastIndexOf('.', at - 2) + 1)
      if (this.#mayFollow(one.slice(at), other.slice(at))) return true;
    return false;
  }

  /** Records that both domains are part of a search path. */
  learn({ from, to }: Step): void {
    for (const domain of [from, to])
      if (domain !== '' && this.#known.size < DOMAINS_MAX) {
        this.#known.add(domain);
        this.#learnFirstLabel(domain);
        if (domain.startsWith('svc.')) this.#clusters.add(domain.slice('svc'.length));
      }
  }

  #learnFirstLabel(domain: string): void {
    const end = domain.indexOf('.');
    if (end > 0 && this.#firstLabels.size < DOMAINS_MAX)
      this.#firstLabels.add(domain.slice(0, end));
  }

  /** `#follows` for truncated domains. */
  #mayFollow(from: string, to: string): boolean {
    if (to === '') return true;
    if (isBelowBeginning(from, to)) {
      for (const each of [from, to]) this.#learnFirstLabel(each);
      return true;
    }
    const domain = from === '' ? to : from;
    const end = domain.indexOf('.');
    // Nothing more is known about a truncated label.
    return end === -1 || this.#firstLabels.has(domain.slice(0, end));
  }

  #follows(from: string, to: string): boolean {
    // `redis.cache.svc` and `redis.cache` are two lookups, because `svc` is not a domain on its own.
    if (from === SERVICES || to === SERVICES) return false;
    if (to === '') return true;
    if (from === '') return this.#known.has(to);
    // `shop.svc.cluster.local.`, `svc.cluster.local.`, `cluster.local.`
    if (isBelow(from, to)) return true;
    // A domain before those of the cluster, as in a dnsConfig list (dnsPolicy None).
    return this.#known.has(from);
  }
}

/** True if one name starts with all of the other's labels, the last of which may be truncated. */
function startsWithWhole(one: string, other: string): boolean {
  return isCut(other) && other.length > 1 && one.startsWith(`${other.slice(0, -1)}.`);
}

/**
 * True if removing some labels from the first name makes it start like the second, as far as both are known:
 * `shop.svc.clu…` and `svc.cluster.l…`.
 */
function isBelowBeginning(one: string, other: string): boolean {
  const [there, above] = [one, other].map((name) => (isCut(name) ? name.slice(0, -1) : name)) as [
    string,
    string,
  ];
  for (
    let at = there.indexOf('.') + 1;
    at > 0 && at < there.length;
    at = there.indexOf('.', at) + 1
  ) {
    const rest = there.slice(at);
    if (rest === above || (isCut(one) && above.startsWith(rest))) return true;
    if (isCut(other) && rest.startsWith(above)) return true;
  }
  return false;
}

/**
 * True if a truncated name ends with the beginning of `svc` and this domain, which makes any other continuation
 * unlikely.
 */
function beginsIn(name: string, domain: string): boolean {
  const there = name.slice(0, -1);
  const whole = `.svc${domain}`;
  for (let length = SERVICES.length; length <= whole.length; length++)
    if (there.endsWith(whole.slice(0, length))) return true;
  return false;
}

/** The length of the leading labels that both have in common, including dots. */
function commonLabels(one: string, other: string): number {
  let labels = 0;
  for (let at = 0; at < one.length && one[at] === other[at]; at++)
    if (one[at] === '.') labels = at + 1;
  return labels;
}
