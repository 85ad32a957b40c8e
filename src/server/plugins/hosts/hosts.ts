/** `hosts`: the directive and how it is set up in both planes. */
import type { Problem } from '../../base/problem.ts';
import { every } from '../../base/clock.ts';
import { droppedShared } from '../../runtime/memory-policy.ts';
import { optional, zones } from '../../corefile/positions.ts';
import { chained, fallthrough, flag, lax, lines, setting } from '../../corefile/properties.ts';
import { pluginProblem, pluginRemark } from '../../corefile/problems.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, integer, seconds, word, worded } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { ZoneMatch } from '../../engine/contract/zone-match.ts';
import type { WireName } from '../../wire/name.ts';
import { answerer } from './answers.ts';
import { HostsBuilder, namesLimit } from './builder.ts';
import { entrySteps, isEntry, readEntry } from './entries.ts';
import { HostsFile } from './file.ts';
import { bytesOf, HostsLookup, type HostsTable } from './hosts-table.ts';

const DEFAULT_FILE = '/etc/hosts';

const syntax = directive({
  name: 'hosts',
  summary: 'answers from a hosts file',
  repeat: 'once',
  args: {
    file: optional(word('FILE'), {
      default: DEFAULT_FILE,
      help: 'a file in /etc/hosts format, which is read again when it changes',
    }),
    zones: zones({
      help: 'queries for names outside these zones go to the next plugin, and such names are ignored in the file',
    }),
  },
  properties: {
    inline: lines(
      '*',
      'ADDRESS NAME…',
      (first, rest) => [first, ...rest].map(({ text }) => text).join(' '),
      {
        above: 'fallthrough',
        controlOnly: true,
        help: 'lines added to those in the file; they must come before `fallthrough`. In `*.example.org` the asterisk matches exactly one label',
      },
    ),
    ttlSeconds: lax(
      setting(
        'ttl',
        worded(seconds('SECONDS', { min: 1, max: 65_535 }), (_text, reason) =>
          reason.startsWith('strconv') ? 'ttl needs a number of second' : 'ttl provided is invalid',
        ),
        { default: 3600, help: 'TTL of all records, 1 to 65535' },
      ),
    ),
    noReverse: chained(flag('no_reverse', { help: 'do not answer PTR queries' })),
    reloadMs: setting(
      'reload',
      worded(duration('DURATION', { minMs: 0 }), (text, reason) =>
        reason.includes('at least')
          ? `invalid negative duration for reload '${text}'`
          : `invalid duration for reload '${text}'`,
      ),
      { default: 5000, help: 'how often to check the file for changes; 0 = never' },
    ),
    maxNames: setting('max_names', integer('COUNT', namesLimit), {
      default: namesLimit.default,
      help: 'maximum number of names in the file, and also in the lines here; reverse names are counted too, and names above the limit are ignored',
    }),
    fallthrough: fallthrough(),
    fallthroughUnsupported: flag('fallthrough_unsupported', {
      help: 'if `fallthrough` is set, also pass queries for types other than A, AAAA and PTR to the next plugin, even for known names',
    }),
  },
  check: (options, at) =>
    options.fallthroughUnsupported && options.fallthrough === null
      ? [pluginProblem('hosts', at, 'fallthrough_unsupported requires fallthrough')]
      : [],
  warn({ inline }, at): readonly Problem[] {
    return inline
      .filter((line) => !isEntry(line))
      .map((line) =>
        pluginRemark('hosts', at, `the line '${line}' is ignored`, {
          code: 'directive-warning',
          hint: `A line needs an address and its names; ${JSON.stringify(line.split(' ')[0])} is not an address or has no names.`,
        }),
      );
  },
});

/**
 * Answers from a hosts file and from lines in the Corefile. The control part reads them, and workers look up names in a
 * shared table.
 */
export const hosts: Plugin = definePlugin({
  syntax,
  async control(options, context) {
    const file = new HostsFile(context.path(options.file), context.clock, context.log);
    if (options.file !== DEFAULT_FILE) file.check();
    const wanted = new ZoneMatch(options.zones);
    const entriesMetric = context.metrics
      .gauge(
        'coredns_hosts_entries',
        'The combined number of entries in hosts and Corefile.',
        ['hostsfile'],
        'last',
      )
      .with(file.path);
    const reloaded = context.metrics
      .gauge(
        'coredns_hosts_reload_timestamp_seconds',
        'The timestamp of the last reload of hosts file.',
        [],
        'last',
      )
      .with();
    const terms = {
      wanted: (name: WireName) => wanted.holdsName(name),
      reverse: !options.noReverse,
    };
    /** Null if the file is unchanged or cannot be read. */
    const build = async (first: boolean): Promise<HostsTable | null> => {
      let builder = new HostsBuilder(options.maxNames);
      if (!(await file.read((line) => entrySteps(line, terms, builder)))) {
        if (!first) return null;
        builder = new HostsBuilder(options.maxNames);
      }
      builder.beginText();
      for (const line of options.inline) readEntry(line, terms, builder);
      entriesMetric.set(builder.count);
      if (file.changedAt !== null) reloaded.set(file.changedAt);
      for (const name of builder.crowded)
        context.log.warning(`${name} has too many addresses; some are omitted`);
      if (builder.full)
        context.log.error(
          `${file.path} has more than ${options.maxNames} names, so the rest are ignored (max_names)`,
        );
      context.log.debug(`Parsed hosts file into ${builder.count} entries`);
      const built = builder.build();
      builder.close();
      return built;
    };
    let table = await build(true);
    context.onJoin(() => [table]);
    context.onStart(() => {
      if (options.reloadMs === 0) return;
      let reading = false;
      const look = async (): Promise<void> => {
        if (reading) return;
        reading = true;
        try {
          const changed = await build(false);
          if (changed === null) return;
          droppedShared(table === null ? 0 : bytesOf(table));
          table = changed;
          context.publish(table);
        } finally {
          reading = false;
        }
      };
      const ticks = every(context.clock, options.reloadMs, () => void look());
      context.onStop(() => ticks.cancel());
    });
  },

  setup(options, context, next) {
    const here = new ZoneMatch(options.zones);
    const through = options.fallthrough === null ? null : new ZoneMatch(options.fallthrough);
    const parts = { here, through, next, unsupported: options.fallthroughUnsupported };
    const answer = answerer(context.writer, options.ttlSeconds, parts);
    let bytes = 0;
    context.onMessage((message) => {
      const table = message as HostsTable;
      droppedShared(bytes);
      bytes = bytesOf(table);
      answer.use(new HostsLookup(table));
    });
    return (query) => answer.link(query);
  },
});
