import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { loadPlugins, order } from './order.ts';

/** Returns the plugin directories whose modules get loaded for these directives. */
function loadedFor(names: readonly string[]): readonly string[] {
  const script = `
    import { registerHooks } from 'node:module';
    const seen = [];
    registerHooks({ load: (url, context, next) => (seen.push(url), next(url, context)) });
    const { loadPlugins } = await import('./src/server/plugins/order.ts');
    await loadPlugins(new Set(${JSON.stringify(names)}));
    console.log(JSON.stringify(seen));`;
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', script];
  const seen = JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' })) as string[];
  const directories = seen.flatMap(
    (url) => /\/src\/server\/plugins\/([^/]+)\//.exec(url)?.[1] ?? [],
  );
  return [...new Set(directories)].toSorted();
}

test('plugins that no Corefile names are not loaded', () => {
  for (const names of [['whoami'], ['errors', 'forward', 'cache'], ['rrl', 'lkg', 'visibility']])
    assert.deepEqual(loadedFor(names), names.toSorted());
});

test('every plugin has one place in the chain, under its own name', async () => {
  const names = order.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const directories = globSync('src/server/plugins/*/*.ts').flatMap(
    (file) => /plugins\/(\w+)\/\1\.ts$/.exec(file)?.[1] ?? [],
  );
  assert.deepEqual(
    // `unserved` contains directives that are parsed but have no effect.
    directories.filter((name) => name !== 'unserved' && !names.includes(name)),
    [],
  );
  for (const { name, load } of order) assert.equal((await load()).name, name);
});

test('plugins are loaded in chain order, regardless of the order of the directives', async () => {
  const shuffled = order.map(({ name }) => name).toReversed();
  assert.deepEqual(
    (await loadPlugins(new Set(shuffled))).map(({ name }) => name),
    order.map(({ name }) => name),
  );
});
