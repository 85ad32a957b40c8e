/** Reads the manifests in a directory or a file once, for commands that exit on their own. */
import { Problem } from '../../base/problem.ts';
import { ManifestDirectory } from './directory-scan.ts';
import type { Manifest } from './manifest.ts';

/**
 * Returns all valid manifests. `problem` receives the faults in the others. It is also called if there are no manifests
 * at all, because a wrong directory would look like an empty cluster.
 * @throws Problem if the path cannot be read
 */
export async function readManifestsOnce(
  path: string,
  problem: (problem: Problem) => void,
): Promise<readonly Manifest[]> {
  const directory = new ManifestDirectory(path);
  const { problems } = await directory.look();
  const { manifests } = directory;
  const [first] = problems;
  // If there is nothing to read, or nothing valid, the path is wrong. Treated as a cluster without objects, it would
  // give answers as if they did not exist.
  if (manifests.length === 0 && first !== undefined) throw withoutFate(first);
  for (const each of problems) problem(each);
  if (manifests.length === 0 && problems.length === 0) problem(noManifests(path, directory.files));
  return manifests;
}

/**
 * Returns all manifests.
 * @throws Problem for the first error in them, or if there are none
 */
export async function readGoodManifests(path: string): Promise<readonly Manifest[]> {
  return readManifestsOnce(path, (problem) => {
    throw withoutFate(problem);
  });
}

/** Returns the problem without the sentence about the rest of the file, for commands that do not watch files. */
function withoutFate(problem: Problem): Problem {
  return problem.with({
    hint: problem.hint ?? 'Kubernetes objects are expected here, in YAML or JSON',
    remedy: problem.remedy?.replace(/(^|; )until then .*$/, '') || undefined,
  });
}

/** @param files the number of files read */
export function noManifests(path: string, files: number): Problem {
  return new Problem({
    code: 'no-manifests',
    text: `there are no objects in ${path}`,
    hint:
      files === 0
        ? 'it contains no file whose name ends in .yaml, .yml or .json'
        : 'ndots reads Services, Namespaces, EndpointSlices, Pods and their workloads',
  });
}
