/** Short Service names that do not exist in the client’s namespace, although they exist in another one. */
import { TYPE } from '../../../server/wire/iana.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { absoluteName } from './absolute-name.ts';
import type { Claims } from './claims.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';

/** NAME.NAMESPACE.svc.DOMAIN. */
const IN_NAMESPACE = /^(.+\.)([^.]+)\.svc\.(.+)$/;

/** A name that the search path of one namespace does not find. */
export interface FoundElsewhere {
  /** As written, with a final dot. */
  readonly name: string;
  readonly failed: number;
  readonly namespace: string;
  readonly clients: ReadonlySet<string>;
  readonly found: readonly string[];
}

/** Names that clients look up in their own namespace without success, while other queries find them in another one. */
export function foundElsewhere(
  { affected, names }: Observations,
  claims: Claims,
): readonly FoundElsewhere[] {
  const isMissing = (name: string): boolean => {
    const view = names.get(name, TYPE.A);
    return view !== undefined && isNeverFound(view);
  };
  const walks = affected.filter(({ name, candidates }) => {
    const written = absoluteName(name);
    // A search that ends before the name as written may continue at another server.
    return candidates.length > 1 && candidates.at(-1) === written && !claims.names.has(written);
  });
  if (walks.length < MIN_CASES) return [];
  const found = foundInNamespaces(names.list);
  return [...Map.groupBy(walks, ({ name }) => absoluteName(name))].flatMap(([name, all]) => {
    const places = found.get(name) ?? [];
    if (places.length === 0) return [];
    const searched = Map.groupBy(all, ({ candidates }) => namespaceIn(candidates, name));
    return [...searched].flatMap(([namespace, own]) => {
      if (namespace === null || own.length < MIN_CASES) return [];
      if (!own[0]!.candidates.every(isMissing)) return [];
      const clients = new Set(own.map(({ client }) => client));
      return [{ name, failed: own.length, namespace, clients, found: places }];
    });
  });
}

/** By the part before the namespace, the full names that exist. */
function foundInNamespaces(list: readonly NameView[]): ReadonlyMap<string, readonly string[]> {
  const all = list.flatMap(({ name, type, outcomes }) => {
    const [, stem] = IN_NAMESPACE.exec(name) ?? [];
    return stem === undefined || type !== TYPE.A || outcomes.found === 0 ? [] : [{ stem, name }];
  });
  const byStem = Map.groupBy(all, ({ stem }) => stem);
  return new Map([...byStem].map(([stem, each]) => [stem, each.map(({ name }) => name)]));
}

/** The namespace in which a search path looks for the name. Null if there is none. */
function namespaceIn(candidates: readonly string[], written: string): string | null {
  for (const candidate of candidates) {
    const [, stem, namespace = null] = IN_NAMESPACE.exec(candidate) ?? [];
    if (stem === written) return namespace;
  }
  return null;
}

export function elsewhereText({ name, namespace, found, clients }: FoundElsewhere): {
  readonly title: string;
  readonly confidence: number;
  readonly seen: readonly string[];
  readonly why: string;
  readonly fix: readonly string[];
} {
  const short = name.slice(0, -1);
  const shown = found.map((each) => each.slice(0, -1));
  const [, , other = 'NAMESPACE'] = IN_NAMESPACE.exec(found[0]!) ?? [];
  return {
    title: 'A short Service name does not exist in the client’s namespace, but in another one',
    confidence: 0.9,
    seen: [
      sentence(`${short} does not exist in namespace ${namespace}; it exists as ${listed(shown)}`),
      `${listed([...clients])} search${clients.size === 1 ? 'es' : ''} only namespace ${namespace}.`,
    ],
    why: `A short name is searched in the pod’s namespace, so each namespace needs its own Service of that name. Every name in the search path of namespace ${namespace} got NXDOMAIN. The servers answer correctly.`,
    fix: [
      `Set the name to ${short}.${other} in the programs of namespace ${namespace}.`,
      `If ${short} should run in ${namespace}, create the Service there, or start the pods in ${other}.`,
    ],
  };
}

/** True if all replies about the name are NXDOMAIN, and there are enough of them. */
export function isNeverFound({ outcomes: { nxdomain, lost, asked } }: NameView): boolean {
  return nxdomain >= MIN_CASES && nxdomain + lost === asked;
}
