/**
 * The example cluster's manifests. The bundler evaluates this file and writes the result into the bundle, which saves
 * the page a request.
 */
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EXAMPLE_CLUSTER } from './example-cluster.ts';

const directory = fileURLToPath(new URL('../../../examples/cluster/', import.meta.url));

/** File contents by path on the browser machine. */
export const exampleFiles: Readonly<Record<string, string>> = Object.fromEntries(
  globSync(`${directory}*.yaml`)
    .toSorted()
    .map((file) => [`${EXAMPLE_CLUSTER}/${basename(file)}`, readFileSync(file, 'utf8')]),
);
