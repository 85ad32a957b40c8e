/** The stories of `stories.test.ts` with five seeds each: names, times and losses differ. */

process.env['SEEDS'] ??= '5';
await import('./stories.test.ts');
