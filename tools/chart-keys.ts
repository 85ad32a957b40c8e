/**
 * Writes which keys the values of the Helm chart may have, as a template reads them: `node tools/chart-keys.ts`. Helm's own check of the
 * schema names a key that is not among them, and not what was probably meant.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What matters here of a JSON schema. */
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  /** Of a list. */
  readonly items?: Schema;
  /** `true`: what else there may be is somebody else's matter. */
  readonly additionalProperties?: boolean;
}

/** Key → keys below it; none: any. `[]` has those of a list's elements. */
interface Keys {
  readonly [key: string]: Keys;
}

const chart = join(import.meta.dirname, '../deploy/helm/ndots');

/** The file that holds them. */
export const chartKeysFile: string = join(chart, 'templates/_keys.tpl');

/** What belongs into that file, by the schema of today. */
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
