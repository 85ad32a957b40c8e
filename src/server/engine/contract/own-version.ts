/** The version of the program. */
import { readFileSync } from 'node:fs';

/** The version of this program, from its package.json. */
export function ownVersion(): string {
  const manifest = new URL('../../../../package.json', import.meta.url);
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string }).version;
}
