/**
 * Which names a search path makes of one another: how exchanges of one application call are known
 * from those of the next.
 */
import { isBelow } from '../../../server/wire/within-zone.ts';
import { isCut } from './message-head.ts';

/** Domains that are remembered; a cluster has a few, and each namespace one. */
const DOMAINS_MAX = 10_000;
/** What names of services have in front of the cluster's domain. */
const SERVICES = 'svc.';

/**
 * A name as `stem` and what was put behind it: `api.stripe.com.` and `cluster.local.`; the domain
 * is empty for a name as it is.
 */
export interface Step {
  readonly stem: string;
  readonly from: string;
  readonly to: string;
}

/** Learns the search domains of a capture from the walks in it. */
export class SearchDomains {
  readonly #known = new Set<string>();
  /** Of these. */
  readonly #firstLabels = new Set<string>();
  /** With a dot in front. */
  readonly #clusters = new Set(['.cluster.local.']);

  /** Whether `domain` was seen as part of a search path. */
  has(domain: string): boolean {
    return this.#known.has(domain);
  }

  get all(): ReadonlySet<string> {
    return this.#known;
  }

  /**
   * The longest of them that the name lies below: the one that made it; null: it lies below none.
   */
  domainOf(name: string): string | null {
    let longest: string | null = null;
    for (const domain of this.#known)
      if (isBelow(name, domain) && domain.length > (longest?.length ?? 0)) longest = domain;
    return longest;
  }

  /**
   * Whether a name or a domain is of the cluster: below `cluster.local`, or below the domain whose
   * `svc` pods have in their search path.
   */
  isOfCluster(name: string): boolean {
    for (const below of this.#clusters)
      if (name.endsWith(below) || (name.length === below.length - 1 && below.endsWith(name)))
        return true;
    return isCut(name) && [...this.#clusters].some((below) => beginsIn(name, below));
  }

  /**
   * How a client could come from the one name to the other by its search path; null if it could
   * not.
   * @param certain false: the domains are not known, but all else looks like it
   */
  step(one: string, other: string): Step | null {
    let at = commonLabels(one, other);
    // The stem may end before what the names have in common, if labels repeat: the longest is tried
    // first.
    for (; at > 0; at = one.lastIndexOf('.', at - 2) + 1) {
      const from = one.slice(at);
      const to = other.slice(at);
      if (from === to) continue;
      if (this.#follows(from, to)) return { stem: one.slice(0, at), from, to };
    }
    return null;
  }

  /**
   * Whether a client could come from the one name to the other, where the capture has only the
   * beginning of one or both, as far as that tells.
   */
  mayStep(one: string, other: string): boolean {
    if (one === other) return one !== '';
    // All but the type may be there of the one, and that is the name as it was typed.
    if (startsWithWhole(one, other) || startsWithWhole(other, one)) return true;
    let at = commonLabels(one, other);
    for (; at > 0; at = one.lastIndexOf('.', at - 2) + 1)
      if (this.#mayFollow(one.slice(at), other.slice(at))) return true;
    return false;
  }

  /** Notes that both domains are of a search path. */
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

  /** `#follows` of domains of which only the beginnings may be there. */
  #mayFollow(from: string, to: string): boolean {
    if (to === '') return true;
    if (isBelowBeginning(from, to)) {
      for (const each of [from, to]) this.#learnFirstLabel(each);
      return true;
    }
    const domain = from === '' ? to : from;
    const end = domain.indexOf('.');
    // Of a label that is cut nobody knows more.
    return end === -1 || this.#firstLabels.has(domain.slice(0, end));
  }

  #follows(from: string, to: string): boolean {
    // `redis.cache.svc` and `redis.cache` are two lookups: `svc` alone is nobody's domain.
    if (from === SERVICES || to === SERVICES) return false;
    if (to === '') return true;
    if (from === '') return this.#known.has(to);
    // `shop.svc.cluster.local.`, `svc.cluster.local.`, `cluster.local.`
    if (isBelow(from, to)) return true;
    return this.#known.has(from);
  }
}

/**
 * Whether all labels of the other, of which the last one may be cut, are those that the one begins
 * with.
 */
function startsWithWhole(one: string, other: string): boolean {
  return isCut(other) && other.length > 1 && one.startsWith(`${other.slice(0, -1)}.`);
}

/**
 * Whether the one, without some labels, begins as the other does, as far as both are there:
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
 * Whether a name of which only the beginning is there ends in the beginning of `svc` and this
 * domain: by then it can hardly go on otherwise.
 */
function beginsIn(name: string, domain: string): boolean {
  const there = name.slice(0, -1);
  const whole = `.svc${domain}`;
  for (let length = SERVICES.length; length <= whole.length; length++)
    if (there.endsWith(whole.slice(0, length))) return true;
  return false;
}

/** Length of the labels, dots included, with which both names begin. */
function commonLabels(one: string, other: string): number {
  let labels = 0;
  for (let at = 0; at < one.length && one[at] === other[at]; at++)
    if (one[at] === '.') labels = at + 1;
  return labels;
}
