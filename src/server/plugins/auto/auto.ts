/** `auto`: serves all zone files in a directory. */
import { statSync } from 'node:fs';
import { every } from '../../base/clock.ts';
import { Problem } from '../../base/problem.ts';
import { zones } from '../../corefile/positions.ts';
import { custom, lax, setting } from '../../corefile/properties.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import { zoneLink } from '../../zone/zone-link.ts';
import { zoneFiles } from './zone-directory.ts';
import { readNaming, type ZoneNaming } from './naming.ts';
import { errorCode } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';

const syntax = directive({
  name: 'auto',
  summary: 'serves all zone files in a directory',
  repeat: 'merge',
  args: {
    zones: zones({
      help: 'answer only names in these zones, even if the directory contains others',
    }),
  },
  properties: {
    naming: custom('directory', 'DIR [REGEXP ORIGIN_TEMPLATE]', readNaming, {
      help: 'directory to scan; each file whose name matches REGEXP is served as the zone that ORIGIN_TEMPLATE names, where `{1}` is the first group; default `db\\.(.*)` and `{1}`',
    }),
    reloadMs: lax(
      setting('reload', duration('DURATION', { minMs: 0 }), {
        default: 60_000,
        help: 'how often to scan for new, removed and changed files; 0: never',
      }),
    ),
  },
  retired: { upstream: 'alias targets are always resolved by the full server' },
  warn: ({ naming }, at) =>
    naming === null
      ? [
          pluginRemark('auto', at, "no zone is served because 'directory’ is missing", {
            code: 'directive-warning',
            remedy: 'Write: directory DIR',
          }),
        ]
      : [],
});

function keyOf({ pattern, template }: ZoneNaming, path: string): string {
  return `auto/${JSON.stringify([path, pattern.source, template])}`;
}

export const auto: Plugin = definePlugin({
  syntax,
  async control({ naming, reloadMs }, context) {
    if (naming === null) return;
    const directory = context.path(naming.directory);
    const { clock, log, metrics } = context;
    checkDirectory(directory, (text) => log.warning(text));
    // Imported lazily, because only the main thread needs it.
    const { ZoneReloader } = await import('../../zone/zone-reloader.ts');
    const { ZonePublisher } = await import('../../zone/zone-publisher.ts');
    const publisher = context.replicated(
      keyOf(naming, directory),
      (open) => new ZonePublisher(open, context.clock),
    );
    const reloader = new ZoneReloader({ publisher, clock, log, metrics });
    const look = async (): Promise<void> => {
      const { sources, isHidden } = zoneFiles(directory, naming, log);
      const there = new Set(sources.map(({ zone }) => zone));
      for (const zone of publisher.names) {
        if (there.has(zone) || isHidden(publisher.paths.get(zone) ?? directory)) continue;
        reloader.forget(zone);
        log.info(`Deleting zone \`${zone}'`);
      }
      const fresh = sources.filter(({ zone }) => !publisher.has(zone));
      await reloader.refresh(sources);
      for (const { zone, path } of sources)
        if (publisher.has(zone)) publisher.paths.set(zone, path);
      for (const { zone, path } of fresh)
        if (publisher.has(zone)) log.info(`Inserting zone \`${zone}' from: ${path}`);
    };
    await look();
    // Loads the parser in advance, so that the first file in an empty directory is served without delay.
    await import('../../zone/zone-file.ts');
    context.onStart(() => {
      if (reloadMs === 0) return;
      const ticks = every(clock, reloadMs, () => void look());
      context.onStop(() => ticks.cancel());
    });
  },

  setup({ naming, zones: origins }, context, next) {
    if (naming === null) return next;
    const key = keyOf(naming, context.path(naming.directory));
    const link = zoneLink({ plugin: 'auto', key, fallthrough: [] }, context, next);
    const within = new ZoneMatch(origins);
    return (query) => (within.holds(query) ? link(query) : next(query));
  },
});

/**
 * Checks the directory. It may be missing, because it can be created later.
 * @throws Problem if it cannot be read
 */
function checkDirectory(path: string, warn: (text: string) => void): void {
  try {
    statSync(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return warn(`Directory does not exist: ${path}`);
    throw new Problem({
      code: 'zone-folder-unreadable',
      text: `Unable to access root path '${path}': ${whyFailed(error)}`,
      remedy: `Check the path and its permissions: ls -ld ${path}`,
      cause: error,
    });
  }
}
