/**
 * The foreign function interface: only the native part of the koffi package. The package's JavaScript is not needed and
 * costs megabytes in every thread (docs/decisions/memory.md).
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type * as Koffi from 'koffi';

import { errorCode } from '../base/error-code.ts';

/**
 * Returns the native part for this thread, or null if the package is not installed.
 * @throws Error if there is none for this system
 */
export function loadKoffi(): typeof Koffi | null {
  const addon = nativePart(dirname(fileURLToPath(import.meta.url)));
  try {
    if (addon === null) return createRequire(import.meta.url)('koffi') as typeof Koffi;
  } catch (error) {
    if (errorCode(error) === 'MODULE_NOT_FOUND') return null;
    throw error;
  }
  const loaded = { exports: {} };
  process.dlopen(loaded, addon);
  return loaded.exports as typeof Koffi;
}

/**
 * Finds the file of the native part. Packages are in the nearest `node_modules`, as usual. npm and pnpm put the native
 * part inside the package or next to it, after resolving links. Returns null if it is not found.
 */
function nativePart(directory: string): string | null {
  const home = join(directory, 'node_modules/koffi');
  if (!existsSync(home)) {
    const above = dirname(directory);
    return above === directory ? null : nativePart(above);
  }
  const { platform, arch } = process;
  const file = `@koromix/koffi-${platform}-${arch}/${hasMusl() ? 'musl' : platform}_${arch}/koffi.node`;
  const real = realpathSync(home);
  const places = [join(real, 'node_modules', file), join(real, '..', file)];
  return places.find((place) => existsSync(place)) ?? null;
}

/** Returns true if this program runs on musl rather than glibc. */
function hasMusl(): boolean {
  return /\/ld-musl-/.test(readFileSync('/proc/self/maps', 'utf8'));
}
