import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = fileURLToPath(new URL('../../..', import.meta.url));
const native = `@koromix/koffi-${process.platform}-${process.arch}`;
const skip = process.platform === 'linux' ? false : 'needs Linux';

/**
 * Loads it like a program in this directory.
 * @returns its version, and the number of package files that were loaded
 */
function loadIn(directory: string): string {
  for (const file of ['server/runtime/koffi.ts', 'server/base/error-code.ts']) {
    mkdirSync(dirname(join(directory, 'src', file)), { recursive: true });
    cpSync(join(here, 'src', file), join(directory, 'src', file));
  }
  const script = `
    const { loadKoffi } = await import(${JSON.stringify(pathToFileURL(join(directory, 'src/server/runtime/koffi.ts')))});
    const koffi = loadKoffi();
    const { createRequire } = process.getBuiltinModule('node:module');
    const files = Object.keys(createRequire(import.meta.url).cache).length;
    console.log(koffi === null ? 'none' : typeof koffi.load(null).func('getpid', 'int', []), files);`;
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  assert.equal(stderr, '');
  return stdout.trim();
}

describe("the foreign function interface loads without the package's JavaScript", { skip }, () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'ndots-koffi-test-')));
  after(() => rmSync(directory, { recursive: true }));
  const whole = (name: string): string => realpathSync(join(here, 'node_modules', name));
  const put = (name: string, ...path: readonly string[]): void => {
    const target = join(directory, ...path, name);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(whole(name), target, { recursive: true });
  };

  test('if both parts are in the same directory', () => {
    put('koffi', 'flat/node_modules');
    put(native, 'flat/node_modules');
    assert.equal(loadIn(join(directory, 'flat/program')), 'function 0');
  });

  test('where the native part of the package is found', () => {
    put('koffi', 'nested/node_modules');
    put(native, 'nested/node_modules/koffi/node_modules');
    assert.equal(loadIn(join(directory, 'nested')), 'function 0');
  });

  test('if packages are links into a store', () => {
    put('koffi', 'store/koffi@3/node_modules');
    put(native, 'store/koffi@3/node_modules');
    mkdirSync(join(directory, 'linked/node_modules'), { recursive: true });
    symlinkSync(
      join(directory, 'store/koffi@3/node_modules/koffi'),
      join(directory, 'linked/node_modules/koffi'),
    );
    assert.equal(loadIn(join(directory, 'linked')), 'function 0');
  });

  test('if there is none', () => {
    assert.equal(loadIn(join(directory, 'bare')), 'none 0');
  });
});
