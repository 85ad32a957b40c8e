/** Generates the tables in docs/lab-stories.md that describe the story file format, from the parser. */
import type { YamlFields } from '../../src/server/kube/manifests/yaml-shape.ts';
import { clusterFields, podFields } from '../../src/tools/lab/story-file/cluster-shape.ts';
import { judges } from '../../src/tools/lab/story-file/conditions.ts';
import {
  actFields,
  modelFields,
  stepKinds,
  storyFields,
} from '../../src/tools/lab/story-file/story-file.ts';

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function printed(fallback: unknown): string {
  if (fallback === undefined) return '**required**';
  if (fallback === null || fallback === '') return '';
  if (typeof fallback === 'string' && /[\n{]/.test(fallback)) return 'the usual one';
  if (Array.isArray(fallback) && fallback.length === 0) return '';
  if (typeof fallback === 'object' && Object.keys(fallback).length === 0) return '';
  if (Array.isArray(fallback)) return `\`[${fallback.join(', ')}]\``;
  return `\`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\``;
}

function rows(fields: YamlFields): string {
  return Object.entries(fields)
    .map(
      ([key, { shape, help, fallback }]) =>
        `| \`${key}\` | \`${cell(shape.placeholder.length > 60 ? '…' : shape.placeholder)}\` | ${printed(fallback)} | ${cell(help)} |`,
    )
    .join('\n');
}

const head = '| key | value | default | |\n|---|---|---|---|\n';

/** The page's sections by heading, one for each part of the format. */
export function formatSections(): Readonly<Record<string, string>> {
  const steps = Object.entries(stepKinds).map(([key, { help, fields, bare, results }]) => {
    const found = Object.entries(results).map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
    return [
      `### ${key}`,
      '',
      `${help[0]!.toUpperCase()}${help.slice(1)}.`,
      '',
      bare === null ? `${head}${rows(fields)}` : `\`- ${key}: ${bare.placeholder}\``,
      ...(found.length === 0 ? [] : ['', 'Results:', '', ...found]),
      '',
    ].join('\n');
  });
  const claims = Object.entries(judges).map(([key, { help }]) => `| \`${key}\` | ${cell(help)} |`);
  return {
    'The story': head + rows(storyFields),
    'The cluster': head + rows(clusterFields),
    'A client': head + rows(podFields),
    'An act': head + rows(actFields),
    'The model': head + rows(modelFields),
    Expectations: `| key | the value is |\n|---|---|\n${claims.join('\n')}`,
    Steps: steps.join('\n'),
  };
}
