/** The stories of `stories.test.ts` with twelve seeds each: names, times and losses differ. */

process.env['SEEDS'] ??= '12';
await import('./stories.test.ts');
