/**
 * Writes the keys that the Helm chart's values may have to a template: `node tools/chart-keys.ts`. Helm's own schema
 * check reports an unknown key, but does not suggest the one that was probably meant.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The subset of JSON Schema that is used here. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  /** The schema for list elements. */
  readonly items?: Schema;
  /** `true` means that other keys are allowed and not checked. */
  readonly additionalProperties?: boolean;
}

/** Maps keys to their nested keys, or to null if any are allowed. `[]` has the keys of list elements. */
interface Keys {
  readonly [key: string]: Keys;
}

const chart = join(import.meta.dirname, '../deploy/helm/ndots');

export const chartKeysFile: string = join(chart, 'templates/_keys.tpl');

/** The template's contents for the current schema. */
export function chartKeys(): string {
  const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as Schema;
  const lines = Object.entries(keysOf(schema)).map(
    ([key, below]) => `  ${JSON.stringify(key)}: ${JSON.stringify(below)}`,
  );
  return [
    '{{- /* Keys that the values may have; written by tools/chart-keys.ts from values.schema.json. */ -}}',
    '{{- define "ndots.keys" -}}',
    `{\n${lines.join(',\n')}\n}`,
    '{{- end -}}',
    '',
  ].join('\n');
}

function keysOf({ properties = {}, items, additionalProperties = false }: Schema): Keys {
  if (additionalProperties) return {};
  if (items?.properties !== undefined) return { '[]': keysOf(items) };
  return Object.fromEntries(Object.entries(properties).map(([key, below]) => [key, keysOf(below)]));
}

if (import.meta.main) writeFileSync(chartKeysFile, chartKeys());
