/**
 * The example capture. The bundler evaluates this file and writes the result into a chunk that the
 * page loads when the user opens the example.
 */
import { readFileSync } from 'node:fs';

/** Its name among the examples. */
export const EXAMPLE_CAPTURE = 'tcp-blocked.pcapng';

/** Its bytes in Base64. */
export const exampleCapture: string = readFileSync(
  new URL(`../../../examples/captures/tcp-blocked.pcapng`, import.meta.url),
  'base64',
);
