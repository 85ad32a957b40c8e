/**
 * Writes the keys that the values of the Helm chart may have, as a template reads them: `node
 * tools/chart-keys.ts`. Helm's own check of the schema reports an unknown key, but not the one that was
 * probably meant.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The used part of a JSON schema. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  /** Of a list. */
  readonly items?: Schema;
  /** `true`: other keys are allowed and not checked. */
  readonly additionalProperties?: boolean;
}

/** Key → keys below it; none: any. `[]` has those of a list's elements. */
interface Keys {
  readonly [key: string]: Keys;
}

const chart = join(import.meta.dirname, '../deploy/helm/ndots');

export const chartKeysFile: string = join(chart, 'templates/_keys.tpl');

/** The content of that file for the current schema. */
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
