/**
 * Names that a search path makes, where a capture shows single steps of walks: it has one of
 * several servers, or the walks take long.
 */
import type { Observations } from './observations.ts';

/** A name of the cluster as search paths are written: the namespace, `svc`, and the rest. */
const OF_NAMESPACE = /^(.+)\.[^.]+\.svc\.(.+)\.$/;
const OF_SERVICES = /^(.+)\.svc\.(.+)\.$/;

export interface SearchSteps {
  /** True if the name is a longer one of a name that is found. */
  isOfFound(name: string): boolean;
  /** The same of a name that is asked for. */
  isOfAsked(name: string): boolean;
  /** True for a name that was made from another name that is found or asked for. */
  isStep(name: string): boolean;
  /** True if the walk of a name as it was written continues where the capture shows nothing. */
  isPart(written: string): boolean;
}

export function searchSteps({ names, domains }: Observations): SearchSteps {
  const asked = new Set(names.list.map(({ name }) => name.slice(0, -1)));
  const found = new Set(
    names.list.filter(({ outcomes }) => outcomes.found > 0).map(({ name }) => name.slice(0, -1)),
  );
  /** Names without the domain of a namespace, and without another one of the cluster. */
  const [inNamespace, inCluster] = [new Map<string, boolean>(), new Set<string>()];
  for (const { name, outcomes } of names.list) {
    if (!domains.isOfCluster(name)) continue;
    const [, stem] = OF_NAMESPACE.exec(name) ?? [];
    if (stem !== undefined)
      inNamespace.set(stem, (inNamespace.get(stem) ?? false) || outcomes.found > 0);
    for (let at = name.indexOf('.'); at >= 0; at = name.indexOf('.', at + 1))
      inCluster.add(name.slice(0, at));
  }
  const isOfFound = (name: string): boolean => hasStem(name, found);
  const isOfAsked = (name: string): boolean => hasStem(name, asked);
  return {
    ...{ isOfFound, isOfAsked },
    isStep: (name) => {
      if (isOfFound(name) || hasClusterName(name, domains)) return true;
      if (!domains.isOfCluster(name)) return false;
      if (isOfAsked(name)) return true;
      const [, stem, rest] = OF_NAMESPACE.exec(name) ?? [];
      if (asked.has(`${stem}.svc.${rest}`) || asked.has(`${stem}.${rest}`)) return true;
      const [, bare, cluster] = OF_SERVICES.exec(name) ?? [];
      return asked.has(`${bare}.${cluster}`);
    },
    isPart: (written) => {
      const stem = written.slice(0, -1);
      const isFound = inNamespace.get(stem);
      if (isFound !== undefined) return isFound;
      return inCluster.has(stem) || !stem.includes('.');
    },
  };
}

/** True if a search domain follows a name of the cluster. */
function hasClusterName(name: string, domains: Observations['domains']): boolean {
  for (let at = name.indexOf('.'); at >= 0 && at < name.length - 1; at = name.indexOf('.', at + 1))
    if (domains.isOfCluster(name.slice(0, at + 1))) return true;
  return false;
}

function hasStem(name: string, known: ReadonlySet<string>): boolean {
  for (let at = name.indexOf('.'); at >= 0 && at < name.length - 1; at = name.indexOf('.', at + 1))
    if (known.has(name.slice(0, at))) return true;
  return false;
}
