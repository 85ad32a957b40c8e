/**
 * The example capture. The bundler evaluates this file and writes the result into a chunk, which is loaded when the
 * user opens the example.
 */
import { readFileSync } from 'node:fs';

/** File name in the examples directory. */
export const EXAMPLE_CAPTURE = 'tcp-blocked.pcapng';

export const exampleCapture: string = readFileSync(
  new URL(`../../../examples/captures/tcp-blocked.pcapng`, import.meta.url),
  'base64',
);
