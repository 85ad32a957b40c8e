/** Reads those objects in a manifest file that matter for DNS. */
import { isObject, list, text, type JsonObject } from '../../base/json-object.ts';
import { printBytes } from '../../base/limits.ts';
import { nearest, Problem } from '../../base/problem.ts';
import { describe, ObjectCheck, shapes, type Manifest, type ManifestKind } from './manifest.ts';
import {
  isTemplate,
  readYaml,
  templateAdvice,
  type YamlDocument,
  type YamlPart,
} from './yaml-document.ts';
import type { DocumentPath } from './yaml-document.ts';
import { PIECE_MEMORY } from './yaml-stream.ts';

/** The API groups of the supported kinds. They are checked because other groups may have kinds with the same name. */
const groups = /^(v1|(apps|discovery\.k8s\.io|multicluster\.x-k8s\.io)\/.*)$/;

export interface ManifestFile {
  readonly manifests: readonly Manifest[];
  /** Estimated memory, in bytes. */
  readonly bytes: number;
  readonly problems: readonly Problem[];
}

/**
 * Memory an object takes without its strings, in bytes, and the factor by which its strings are larger than in the
 * file. Both were measured.
 */
const OBJECT_BYTES = 1024;
const TEXT_FACTOR = 4;

/** Maximum number of problems per file. Any more would not be informative, so the rest of the file is not read. */
const PROBLEMS_MAX = 100;

/**
 * Reads the objects in one file. Kinds that do not matter for DNS are skipped, and invalid objects become problems.
 * @param memory maximum number of bytes for reading one object, and for all objects together
 */
export function readManifests(
  content: string,
  file: string,
  memory: number = PIECE_MEMORY,
): ManifestFile {
  const found = new FoundManifests();
  /** Entries of the list being read. They are used once its end shows that it really is a list. */
  let entries = new FoundManifests();
  for (const part of readYaml(content, file, { memory, entries: true })) {
    if (part.item === null) {
      if (isList(part.value)) found.add(entries);
      entries = new FoundManifests();
    }
    (part.item === null ? found : entries).read(part);
    const end = tooMany(found, entries, memory);
    if (end === null) continue;
    found.problems.push(new Problem({ ...end, code: 'manifest-too-large', place: part.place([]) }));
    break;
  }
  const { manifests, bytes, problems } = found;
  const [first] = problems;
  if (first?.hint === null && isTemplate(content)) problems[0] = first.with(templateAdvice);
  return { manifests, bytes, problems };
}

function tooMany(
  { bytes, problems }: FoundManifests,
  entries: FoundManifests,
  memory: number,
): { readonly text: string; readonly remedy?: string } | null {
  if (problems.length + entries.problems.length >= PROBLEMS_MAX)
    return { text: `there are ${PROBLEMS_MAX} errors, so the rest of the file is not read` };
  if (bytes + entries.bytes <= memory) return null;
  return {
    text: `the objects read so far need more than ${printBytes(memory)} of memory`,
    remedy: manifestMemoryRemedy,
  };
}

/** The fix for exceeding the memory limit. */
export const manifestMemoryRemedy =
  'split the directory, remove unneeded objects, or raise manifest_memory in kubernetes';

/** The manifests and problems found in documents or list entries. */
class FoundManifests {
  readonly manifests: Manifest[] = [];
  readonly problems: Problem[] = [];
  bytes = 0;

  add({ manifests, problems, bytes }: FoundManifests): void {
    for (const manifest of manifests) this.manifests.push(manifest);
    for (const problem of problems) this.problems.push(problem);
    this.bytes += bytes;
  }

  read(part: YamlPart): void {
    if (part.problem !== null) {
      this.problems.push(part.problem);
      return;
    }
    const before = this.manifests.length;
    this.#read(part, part.value, []);
    const added = this.manifests.length - before;
    if (added > 0) this.bytes += OBJECT_BYTES * added + TEXT_FACTOR * part.length;
  }

  #read(document: YamlDocument, value: unknown, path: DocumentPath): void {
    if (value === null || value === undefined) return;
    if (!isObject(value)) {
      this.problems.push(
        new Problem({
          code: 'manifest-shape',
          text: `expected a Kubernetes object, but this is ${describe(value)}`,
          place: document.place(path),
        }),
      );
      return;
    }
    if (isList(value)) {
      list(value, 'items').forEach((item, index) =>
        this.#read(document, item, [...path, 'items', index]),
      );
      return;
    }
    const kind = text(value, 'kind');
    if (!Object.hasOwn(shapes, kind)) {
      const meant = groups.test(text(value, 'apiVersion'))
        ? nearest(kind, Object.keys(shapes))
        : null;
      if (meant === null) return;
      this.problems.push(
        new Problem({
          code: 'manifest-kind',
          text: `there is no kind '${kind}'`,
          place: document.place([...path, 'kind']),
          remedy: `did you mean ${meant}?`,
        }),
      );
      return;
    }
    const check = new ObjectCheck(document, value, path);
    const manifest = check.manifest(kind as ManifestKind);
    shapes[kind as ManifestKind](check);
    if (check.problems.length > 0) this.problems.push(...check.problems);
    else if (manifest !== null) this.manifests.push(manifest);
  }
}

/** Matches List, and also ServiceList and other typed lists, as printed by `kubectl get -o yaml`. */
function isList(value: unknown): value is JsonObject {
  return isObject(value) && text(value, 'kind').endsWith('List') && Array.isArray(value['items']);
}
