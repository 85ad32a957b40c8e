/** `file`: answers from zone files. */
import { whyFailed } from '../../base/why-failed.ts';
import { every } from '../../base/clock.ts';
import { Problem, Problems } from '../../base/problem.ts';
import { required, zones } from '../../corefile/positions.ts';
import { chained, fallthrough, flag, lax, setting } from '../../corefile/properties.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import type { ZoneSource } from '../../zone/zone-reloader.ts';
import { zoneLink } from '../../zone/zone-link.ts';

const syntax = directive({
  name: 'file',
  summary: 'serves zone files',
  repeat: 'gather',
  args: {
    file: required(word('DBFILE'), { help: 'zone file (RFC 1035 section 5)' }),
    zones: zones({ help: 'zones in the file, each read with its own name as the origin' }),
  },
  properties: {
    reloadMs: lax(
      setting('reload', duration('DURATION', { minMs: 0 }), {
        default: 60_000,
        help: 'how often to check the file for changes; 0: never',
      }),
    ),
    byTime: chained(
      flag('reload_by_mtime', {
        help: 'reload the file whenever it changes, even if its SOA serial stays the same',
      }),
    ),
    fallthrough: fallthrough({
      help: 'pass names without records to the next plugin; if ZONES are given, only names in these zones',
    }),
  },
  retired: { upstream: 'alias targets are always resolved by the full server' },
});

function keyOf(sources: readonly ZoneSource[]): string {
  return `file/${JSON.stringify(sources)}`;
}

function sourcesOf(
  options: readonly {
    readonly file: string;
    readonly zones: readonly string[];
    readonly byTime: boolean;
  }[],
  path: (file: string) => string,
): readonly ZoneSource[] {
  // If a zone has two files, the later one wins, as in CoreDNS.
  const byZone = new Map<string, ZoneSource>();
  for (const { file, zones: names, byTime } of options)
    for (const zone of names) byZone.set(zone, { zone, path: path(file), byTime });
  return [...byZone.values()];
}

/** Answers from zone files. The main thread reads and packs them, and all workers share the resulting memory. */
export const file: Plugin = definePlugin({
  syntax,
  async control(options, context) {
    const sources = sourcesOf(options, (name) => context.path(name));
    const { clock, log, metrics } = context;
    // Imported here because workers never need them.
    const { ZoneReloader } = await import('../../zone/zone-reloader.ts');
    const { ZonePublisher } = await import('../../zone/zone-publisher.ts');
    const publisher = context.replicated(
      keyOf(sources),
      (open) => new ZonePublisher(open, context.clock),
    );
    const reloader = new ZoneReloader({ publisher, clock, log, metrics });
    const reloadMs = new Map(
      options.flatMap(({ file: name, zones: names, reloadMs: ms }) =>
        names.map((zone) => [`${zone} ${context.path(name)}`, ms] as const),
      ),
    );
    const problems: Problem[] = [];
    for (const source of sources) {
      const { zone, path } = source;
      const ms = reloadMs.get(`${zone} ${path}`) ?? 0;
      const found = await reloader.load(source);
      problems.push(...found.problems);
      if (found.missing === null) continue;
      if (ms === 0 || !mayCome(found.missing)) problems.push(unreadable(path, found.missing));
      else
        log.warning(
          `Failed to open "${path}": trying again in ${ms / 1000}s: ${whyFailed(found.missing)}`,
        );
    }
    if (problems.length > 0) throw new Problems(problems);
    context.onStart(() => {
      for (const ms of new Set(reloadMs.values())) {
        if (ms === 0) continue;
        const own = sources.filter(({ zone, path }) => reloadMs.get(`${zone} ${path}`) === ms);
        const ticks = every(clock, ms, () => void reloader.refresh(own));
        context.onStop(() => ticks.cancel());
      }
    });
  },

  setup(options, context, next) {
    const sources = sourcesOf(options, (name) => context.path(name));
    const through = options.flatMap((one) => one.fallthrough ?? []);
    const parts = { plugin: 'file', key: keyOf(sources), fallthrough: through };
    return zoneLink(parts, context, next);
  },
});

/** True for a missing or unreadable file, which may become readable later. A directory or a device never does. */
function mayCome(error: NodeJS.ErrnoException): boolean {
  return !['EISDIR', 'ENOTREG', 'EFBIG'].includes(error.code ?? '');
}

function unreadable(path: string, error: Error): Problem {
  return new Problem({
    code: 'zone-unreadable',
    text: `plugin/file: open ${path}: ${whyFailed(error)}`,
    remedy: `Check the path and its permissions: ls -l ${path}`,
    cause: error,
  });
}
