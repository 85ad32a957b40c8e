/** Generates the Corefile that the CoreDNS chart builds from its values, with `extraConfig` followed by `servers`. */
import { child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import type { DocumentPath } from '../../server/kube/manifests/yaml-document.ts';
import { SourceText, type LineOrigin } from './source-text.ts';
import type { LintObject } from './subject.ts';

/** The Corefile, along with the place of the value behind each line. Null if the values have no `servers`. */
export function helmCorefile(values: LintObject, lines: readonly string[]): SourceText | null {
  const nested = children(values.value, 'servers').length === 0;
  const root = nested ? child(values.value, 'coredns') : values.value;
  const above = nested ? ['coredns'] : [];
  const servers = children(root, 'servers');
  if (servers.length === 0) return null;
  const writer = new Writer(values, lines);
  for (const [name, config] of Object.entries(child(root, 'extraConfig')))
    writer.line(words(name, config), [...above, 'extraConfig', name], 0);
  servers.forEach((server, index) => writer.server(server, [...above, 'servers', index]));
  return new SourceText({
    label: `${values.file} servers`,
    file: values.file,
    within: 'servers',
    text: writer.text,
    origins: writer.origins,
  });
}

class Writer {
  readonly #values: LintObject;
  readonly #lines: readonly string[];
  readonly #written: string[] = [];
  readonly origins: LineOrigin[] = [];

  constructor(values: LintObject, lines: readonly string[]) {
    this.#values = values;
    this.#lines = lines;
  }

  get text(): string {
    return this.#written.join('\n');
  }

  /**
   * Adds a line that comes from the value at `path`.
   * @param rest the words after the first, if they come from another value
   */
  line(text_: string, path: DocumentPath, indent: number, rest?: LineOrigin['rest']): void {
    const { line, column } = this.#values.place(path);
    this.#written.push(' '.repeat(indent) + text_);
    const origin = { line, shift: column - 1 - indent, exact: false };
    this.origins.push(rest === undefined ? origin : { ...origin, rest });
  }

  /** A plugin's parameters, which follow its name in the Corefile. */
  #parameters(name: string, plugin: JsonObject, path: DocumentPath): LineOrigin['rest'] {
    const given = textOf(plugin['parameters']);
    if (given === '') return undefined;
    const { line, column } = this.#values.place([...path, 'parameters']);
    // The text follows quotes or a block mark.
    const lines = [this.#lines[line - 1]?.slice(column - 1) ?? '', this.#lines[line] ?? ''];
    const [same, next] = lines.map((each) => each.indexOf(given));
    const from = 4 + name.length + 2;
    if (same! < 0 && next! >= 0)
      return { from, line: line + 1, shift: next! + 1 - from, exact: false };
    return { from, line, shift: column + Math.max(0, same!) - from, exact: false };
  }

  server(server: JsonObject, path: DocumentPath): void {
    const port = server['port'];
    const zones = children(server, 'zones').map(
      (zone) => `${text(zone, 'scheme')}${text(zone, 'zone') || '.'}`,
    );
    const keys = zones.length === 0 ? ['.'] : zones;
    // The chart writes the port after the last zone only.
    const address = `${keys.join(' ')}${typeof port === 'number' || typeof port === 'string' ? `:${port}` : ''}`;
    this.line(`${address} {`, path, 0);
    children(server, 'plugins').forEach((plugin, index) =>
      this.#plugin(plugin, [...path, 'plugins', index]),
    );
    this.line('}', path, 0);
  }

  #plugin(plugin: JsonObject, path: DocumentPath): void {
    const block = text(plugin, 'configBlock');
    const head = words(text(plugin, 'name'), plugin);
    const parameters = this.#parameters(text(plugin, 'name'), plugin, path);
    this.line(block === '' ? head : `${head} {`, [...path, 'name'], 4, parameters);
    if (block === '') return;
    const { line, column } = this.#values.place([...path, 'configBlock']);
    const isBlock = this.#lines[line - 1]?.[column - 1] === '|';
    block.split('\n').forEach((inner, index) => {
      const at = this.#lines[line + index] ?? '';
      const start = isBlock ? at.indexOf(inner) : -1;
      this.#written.push(' '.repeat(8) + inner);
      this.origins.push(
        start < 0
          ? { line, shift: column - 9, exact: false }
          : { line: line + 1 + index, shift: start - 8, exact: true },
      );
    });
    this.line('}', path, 4);
  }
}

function words(name: string, config: unknown): string {
  const given = typeof config === 'object' && config !== null ? config : {};
  const parameters = textOf((given as JsonObject)['parameters']);
  return parameters === '' ? name : `${name} ${parameters}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
