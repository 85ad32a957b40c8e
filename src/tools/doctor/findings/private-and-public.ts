/** One name with private addresses from one server, and with public ones from another. */
import { typeName } from '../../../server/wire/iana.ts';
import type { AnswerSet } from '../observe/answer-sets.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { isPrivate } from '../observe/private-address.ts';
import { serveTheSame } from '../observe/roles.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { fromTo, listed, sentence } from '../texts.ts';
import { MIN_RETURNS, MIN_SAME_ANSWERS } from '../thresholds/answers.ts';

interface TwoViews {
  readonly view: NameView;
  readonly internal: readonly AnswerSet[];
  readonly external: readonly AnswerSet[];
  /** True if each server gives only one of the two. */
  readonly isByServer: boolean;
}

export const privateAndPublic: FindingKind = {
  code: 'ND8008',
  title: 'A name alternates between private and public addresses because the upstreams disagree',
  name: 'private and public answers for one name',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(
      ({ sets, name }) => sets !== null && !claims.names.has(name),
    );
    if (!views.some(({ sets }) => sets!.list.length > 1))
      return unknown('no name has more than one set of addresses');
    const found = views.flatMap((view) => twoViews(view, observed) ?? []);
    const [first] = found.toSorted(
      (one, other) => Number(other.isByServer) - Number(one.isByServer),
    );
    if (first === undefined)
      return excluded('no name alternates between private and public addresses');
    const names = [...new Set(found.map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const { view, internal, external, isByServer } = first;
    const servers = [...new Set([...internal, ...external].map(({ asked }) => asked))];
    return {
      severity: 'critical',
      confidence: isByServer ? 0.93 : 0.88,
      seen: [
        sentence(
          `${view.name} ${typeName(view.type)}: ${[...internal, ...external].map(textOf).join('; ')}`,
        ),
        isByServer
          ? 'Each server always returns the same one of the two.'
          : `${listed(servers)} alternates between the two, so the servers behind it, or its upstreams, have different answers.`,
        names.length > 1 && sentence(`The affected names are ${listed(names)}`),
      ],
      why: 'The zone has an internal version with private addresses and a public one (split horizon). forward queries both kinds of servers in turn, so which version a client gets is chance. The public address is often unreachable from inside, or leads to another entry point of the service.',
      fix: [
        'Add a server block for this zone that forwards only to the servers with the internal version. Forward all other names to servers with the same data.',
        'Until then, set forward { policy sequential }, which hides the problem as long as the first server is up.',
      ],
      prove: `run ndots query ${view.name} @${isByServer ? `${internal[0]!.asked}, then again with @${external[0]!.asked}` : 'UPSTREAM for each upstream in the Corefile'}`,
      disproved: 'all upstreams return the same addresses (then the name has changed)',
      affected: names,
    };
  },
};

function twoViews(view: NameView, observed: Observations): TwoViews | null {
  const list = view.sets!.list.filter(({ addresses, size }) => size === addresses.length);
  const internal = list.filter(({ addresses }) => addresses.every(isPrivate));
  const external = list.filter(({ addresses }) => !addresses.some(isPrivate));
  const [inner, outer] = [of(internal, external), of(external, internal)];
  // Servers that return only one of the two. A DNS pod in the capture may forward both.
  const isByServer = inner.some((one) =>
    outer.some((other) => isBeside(one, other) && serveTheSame(observed, one.server, other.server)),
  );
  if (isByServer) return { view, internal: inner, external: outer, isByServer };
  const byTurns = internal.some((one) =>
    external.some(
      (other) =>
        one.server === other.server && Math.min(one.returned, other.returned) >= MIN_RETURNS,
    ),
  );
  return byTurns ? { view, internal, external, isByServer } : null;
}

/** The sets whose servers return none of the others. */
function of(sets: readonly AnswerSet[], others: readonly AnswerSet[]): readonly AnswerSet[] {
  return sets.filter(({ server }) => !others.some((each) => each.server === server));
}

/** True if the answers of two servers overlap in time, so that the name did not change. */
function isBeside(one: AnswerSet, other: AnswerSet): boolean {
  return (
    Math.max(one.count, other.count) >= MIN_SAME_ANSWERS &&
    one.firstMs < other.lastMs &&
    other.firstMs < one.lastMs
  );
}

function textOf({ asked, addresses, count, firstMs, lastMs }: AnswerSet): string {
  return `${asked} returned ${addresses.join(' ')} (${count} times, ${fromTo(firstMs, lastMs)})`;
}
