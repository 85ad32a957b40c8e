/** Parses the Kubernetes objects in a story. */
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { manifestsState, type ProxyObjects } from './proxy-rules/cluster-state.ts';
import { readManifests } from '../../server/kube/manifests/manifest-file.ts';

/** Parses YAML objects, and adds those that a cluster's controllers would create. Throws a `Problem`. */
export function manifestText(source: string): ProxyObjects {
  const { manifests, problems } = readManifests(source, 'the story');
  if (problems.length > 0) throw problems[0]!;
  return manifestsState(manifests, (problem) => {
    throw problem;
  });
}

/** Does the same for objects that have already been parsed from YAML. */
export function objectsOf(list: readonly JsonObject[]): ProxyObjects {
  return manifestText(yamlOf(list));
}

/** `namespace/name`, where the namespace may be left out of the object. */
export function keyOf(raw: JsonObject): string {
  const metadata = child(raw, 'metadata');
  return `${text(metadata, 'namespace') || 'default'}/${text(metadata, 'name')}`;
}

/** Prints objects as documents in one file. */
export function yamlOf(list: readonly unknown[]): string {
  return list.map((each) => `---\n${JSON.stringify(each)}\n`).join('');
}
