/** Sorts file contents into Corefiles, their imports, Kubernetes objects, and resolver settings. */
import { basename } from 'node:path';
import {
  asObject,
  child,
  children,
  isObject,
  text as textAt,
} from '../../server/base/json-object.ts';
import { Problem, type Place } from '../../server/base/problem.ts';
import {
  hasTemplateKey,
  parseYaml,
  templateAdvice,
  type YamlDocument,
  type DocumentPath,
} from '../../server/kube/manifests/yaml-document.ts';
import type { GivenFile } from './gather.ts';
import { helmCorefile } from './helm-values.ts';
import { SourceText, type LineOrigin } from './source-text.ts';
import type { LintObject } from './subject.ts';

export interface CorefileInput {
  readonly source: SourceText;
  readonly object: LintObject | null;
}

/** Memory limit in bytes for parsing a YAML document, beyond which parsing is aborted. */
const YAML_MEMORY = 1024 * 1024 * 1024;

/** A `*.override` or `*.server` file, which a Corefile imports by name. */
export interface FragmentInput extends CorefileInput {
  readonly name: string;
}

export interface Inputs {
  readonly corefiles: readonly CorefileInput[];
  readonly fragments: readonly FragmentInput[];
  readonly objects: readonly LintObject[];
  readonly resolvConfs: readonly { readonly file: string; readonly text: string }[];
  readonly problems: readonly Problem[];
}

/**
 * Sorts file contents.
 * @param progress called before each file is parsed, with the current task as part of a sentence
 */
export function sortInputs(
  files: readonly GivenFile[],
  progress?: (text: () => string) => void,
): Inputs {
  const inputs = new Sorting();
  for (const [index, file] of files.entries()) {
    progress?.(() => `reading ${index + 1} of ${files.length}: ${file.file}`);
    inputs.take(file);
  }
  return inputs;
}

/** True if text looks like YAML for Kubernetes or Helm rather than a Corefile. */
function looksLikeYaml(text: string): boolean {
  return (
    /^(apiVersion|kind|data|servers|metadata):/m.test(text) ||
    /^---(\s|$)/.test(text) ||
    /^\s*[{[]\s*["\n]/.test(text)
  );
}

class Sorting implements Inputs {
  readonly corefiles: CorefileInput[] = [];
  readonly fragments: FragmentInput[] = [];
  readonly objects: LintObject[] = [];
  readonly resolvConfs: { file: string; text: string }[] = [];
  readonly problems: Problem[] = [];

  take({ file, text, named }: GivenFile): void {
    const name = basename(file);
    if (/\.(override|server)$/.test(name)) {
      const source = new SourceText({ label: file, file, within: null, text, origins: null });
      this.fragments.push({ name, source, object: null });
    } else if (/^resolv\.conf$/.test(name)) this.resolvConfs.push({ file, text });
    else if (/\.(ya?ml|json)$/i.test(name) || looksLikeYaml(text))
      this.#takeYaml(file, text, named);
    else {
      const source = new SourceText({ label: file, file, within: null, text, origins: null });
      this.#takeCorefile({ source, object: null });
    }
  }

  #takeYaml(file: string, text: string, named: boolean): void {
    const { documents, problems } = parseYaml(text, file, YAML_MEMORY);
    // Directories contain charts and other YAML, so files in them need not be manifests.
    const lines = text.split('\n');
    const isChart =
      problems.some(({ hint }) => hint === templateAdvice.hint) ||
      documents.some(({ value }) => hasTemplateKey(value));
    if (named || !isChart) this.problems.push(...problems);
    if (isChart) {
      if (named && problems.length === 0) this.#template({ file, line: 1, column: 1 });
      return;
    }
    for (const document of documents) this.#takeDocument(document, [], file, lines);
  }

  #template(place: Place): void {
    const what = 'this Helm template has not been rendered';
    this.problems.push(new Problem({ code: 'yaml-syntax', text: what, place, ...templateAdvice }));
  }

  /** Accepts a Corefile. If it is only a template, this is all that is reported. */
  #takeCorefile(input: CorefileInput): void {
    const { source } = input;
    const line = source.text.split('\n').findIndex((each) => /^\s*\{\{/.test(each)) + 1;
    if (line === 0) this.corefiles.push(input);
    else this.#template(source.outside({ line, column: 1 }));
  }

  #takeDocument(
    document: YamlDocument,
    path: DocumentPath,
    file: string,
    lines: readonly string[],
  ): void {
    const value = path.reduce<unknown>(
      (at, key) => (isObject(at) || Array.isArray(at) ? (at as never)[key] : undefined),
      document.value,
    );
    if (!isObject(value)) return;
    const kind = textAt(value, 'kind');
    if (kind.endsWith('List') && Array.isArray(value['items'])) {
      value['items'].forEach((_item, index) =>
        this.#takeDocument(document, [...path, 'items', index], file, lines),
      );
      return;
    }
    const metadata = child(value, 'metadata');
    const place = (inner: DocumentPath): Place => document.place([...path, ...inner]);
    const object: LintObject = {
      file,
      kind: kind || (isHelmValues(value) ? 'HelmValues' : ''),
      namespace: textAt(metadata, 'namespace'),
      name: textAt(metadata, 'name'),
      value,
      place,
    };
    if (object.kind === '') return;
    this.objects.push(object);
    if (object.kind === 'ConfigMap') this.#takeConfigMap(object, lines);
    if (object.kind === 'HelmValues') this.#takeHelmValues(object, lines);
    for (const values of valuesWithin(object, lines))
      if (isHelmValues(values.value)) {
        this.objects.push(values);
        this.#takeHelmValues(values, lines);
      }
  }

  #takeConfigMap(object: LintObject, lines: readonly string[]): void {
    for (const [key, value] of Object.entries(child(object.value, 'data'))) {
      if (typeof value !== 'string') continue;
      const within = `data[${JSON.stringify(key)}]`;
      if (key === 'kubelet') {
        const kubelet = parseYaml(value, object.file).documents[0];
        if (kubelet === undefined) continue;
        const place = (): Place => object.place(['data', key]);
        const settings = asObject(kubelet.value);
        const kind = 'KubeletConfiguration';
        this.objects.push({ ...object, kind, value: settings, place });
        continue;
      }
      if (key === 'resolv.conf') this.resolvConfs.push({ file: object.file, text: value });
      const isFragment = /\.(override|server)$/.test(key);
      if (!isFragment && !/corefile/i.test(key)) continue;
      const source = new SourceText({
        label: `${object.file} ${within}`,
        file: object.file,
        within,
        text: value,
        origins: scalarOrigins(value, object.place(['data', key]), lines),
      });
      if (isFragment) this.fragments.push({ name: key, source, object });
      else this.#takeCorefile({ source, object });
    }
  }

  #takeHelmValues(object: LintObject, lines: readonly string[]): void {
    const made = helmCorefile(object, lines);
    if (made !== null) this.corefiles.push({ source: made, object });
  }
}

/** Paths of values in objects that install a chart, either as an object or as YAML text. */
const valuePaths: Readonly<Record<string, readonly (readonly string[])[]>> = {
  // k3s and RKE2
  HelmChartConfig: [['spec', 'valuesContent']],
  HelmChart: [['spec', 'valuesContent']],
  // Flux
  HelmRelease: [['spec', 'values']],
  // Argo CD
  Application: [
    ['spec', 'source', 'helm', 'valuesObject'],
    ['spec', 'source', 'helm', 'values'],
  ],
};

/** The chart values inside an object of another kind. */
function valuesWithin(object: LintObject, lines: readonly string[]): readonly LintObject[] {
  return (valuePaths[object.kind] ?? []).flatMap((path) => {
    const at = path.reduce<unknown>((value, key) => asObject(value)[key], object.value);
    const found = { ...object, kind: 'HelmValues' };
    if (isObject(at))
      return [{ ...found, value: at, place: (inner) => object.place([...path, ...inner]) }];
    if (typeof at !== 'string') return [];
    const document = parseYaml(at, object.file).documents[0];
    if (document === undefined) return [];
    const origins = scalarOrigins(at, object.place(path), lines);
    const place: LintObject['place'] = (inner) => {
      const { line, column } = document.place(inner);
      const origin = origins[line - 1]!;
      return { file: object.file, line: origin.line, column: column + origin.shift };
    };
    return [{ ...found, value: asObject(document.value), place }];
  });
}

function isHelmValues(value: ReturnType<typeof asObject>): boolean {
  const own = children(value, 'servers');
  const nested = children(child(value, 'coredns'), 'servers');
  return [...own, ...nested].some((server) => Array.isArray(server['plugins']));
}

/** The places of lines in YAML text that is embedded in YAML. If the text is quoted, all lines are at its beginning. */
function scalarOrigins(text: string, at: Place, lines: readonly string[]): LineOrigin[] {
  const written = text.split('\n');
  const isBlock = lines[at.line - 1]?.[at.column - 1] === '|';
  const first = written.findIndex((line) => line.trim() !== '');
  const sample = lines[at.line + first] ?? '';
  const shift = first < 0 ? 0 : sample.indexOf(written[first]!);
  if (isBlock && shift >= 0)
    return written.map((_line, index) => ({ line: at.line + 1 + index, shift, exact: true }));
  return written.map(() => ({ line: at.line, shift: at.column - 1, exact: false }));
}
