/** `ndots bench`: puts one or two servers under realistic load, and measures latency and losses as clients see them. */
import { printSpan } from '../../../server/base/elapsed.ts';
import { printHostPort } from '../../../server/base/ip.ts';
import { batchedUdp } from '../../../server/runtime/packet-loop.ts';
import { loadQueries, readNames, type LoadName } from '../../../tools/load/load-queries.ts';
import { runLoad, type ServerLoad } from '../../../tools/load/load-run.ts';
import { batchedUdpPort, plainUdpPort } from '../../../server/transport/udp/udp-port.ts';
import { rcodeName } from '../../../server/wire/iana.ts';
import type { Query } from '../../../server/transport/query.ts';
import { recordedQueries } from './bench-recorded.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { clientNamed } from '../client-choice.ts';
import { parseBenchOptions, type BenchOptions } from './bench-options.ts';
import { givenText, readText } from '../named-file.ts';
import { aligned, wrap } from '../page.ts';
import { imageSettings } from '../trace/image-settings.ts';

export const bench: Command = {
  name: 'bench',
  async run(words, io) {
    const options = parseBenchOptions(words);
    const { queries, what } = await loadOf(options, io);
    const loads = await runLoad({
      ...options,
      servers: options.servers.map((server) => ({ ...server, serverName: '' })),
      queries,
      turnMs: TURN_MS,
      openPort: batchedUdp().available ? batchedUdpPort : plainUdpPort,
      signal: io.signal,
      progress: (doneMs) =>
        io.progress(() => `${Math.round(doneMs / 1000)} of ${printSpan(options.lastsMs)}`),
    });
    io.out(
      options.output === 'json' ? printJson(options, loads) : printText(options, loads, what, io),
    );
    if (io.signal.aborted) return EXIT.interrupted;
    return loads.some(({ lost }) => lost > 0) ? EXIT.no : EXIT.ok;
  },
};

/** Returns the queries to send repeatedly, and a description of where they came from. */
async function loadOf(
  options: BenchOptions,
  io: Io,
): Promise<{ readonly queries: readonly Query[]; readonly what: string }> {
  const { recorded, names: file } = options;
  if (recorded !== null) {
    const queries = await recordedQueries(recorded, io);
    return {
      queries,
      what: `${queries.length} ${queries.length === 1 ? 'query' : 'queries'} of ${recorded === '-' ? 'standard input' : recorded}`,
    };
  }
  const client = clientNamed(options.client);
  const names =
    file === null ? usualNames : readNames(await givenText(file, 'list of names', io), file);
  const resolvConf =
    options.resolvConf === null ? podConf : readText(options.resolvConf, 'resolv.conf');
  const queries = await loadQueries(names, client, imageSettings(resolvConf, null));
  return {
    queries,
    what: `${names.length} names as ${options.client} looks them up, ${queries.length} queries a round`,
  };
}

/** Two servers alternate at this interval. */
const TURN_MS = 1000;

const usualNames: readonly LoadName[] = [
  'kubernetes.default',
  'api.example.com',
  'www.example.org',
].map((name) => ({ name, type: null }));

const podConf =
  'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n';

const quantiles = [0.5, 0.9, 0.99, 0.999] as const;
const nameOf = (options: BenchOptions, nth: number): string =>
  printHostPort(options.servers[nth]!.host, options.servers[nth]!.port);

function printJson(options: BenchOptions, loads: readonly ServerLoad[]): string {
  const document = loads.map((load, nth) => ({
    server: nameOf(options, nth),
    sent: load.sent,
    lost: load.lost,
    late: load.late,
    errors: load.errors,
    truncated: load.truncated,
    rcodes: Object.fromEntries([...load.rcodes].map(([rcode, count]) => [rcodeName(rcode), count])),
    milliseconds: {
      mean: load.latencies.mean,
      ...Object.fromEntries(quantiles.map((q) => [`p${q * 100}`, load.latencies.quantile(q)])),
      max: load.latencies.max,
    },
  }));
  return `${JSON.stringify(document)}\n`;
}

/** Upper bounds of the histogram rows, milliseconds. */
const bounds = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] as const;
const BAR_MAX = 30;
const BAR_MIN = 5;
/** Width of the bounds and the share. */
const BESIDE_BAR = 31;

function printText(
  options: BenchOptions,
  loads: readonly ServerLoad[],
  what: string,
  { columns }: Pick<Io, 'columns'>,
): string {
  const rows: (readonly string[])[] = [['', ...loads.map((_, nth) => nameOf(options, nth))]];
  const row = (title: string, of: (load: ServerLoad) => string): void => {
    rows.push([title, ...loads.map(of)]);
  };
  row('sent', ({ sent }) => String(sent));
  row('lost', ({ lost, sent }) => `${lost} (${((100 * lost) / Math.max(1, sent)).toFixed(2)} %)`);
  if (loads.some(({ errors }) => errors > 0))
    row('refused, unreachable', ({ errors }) => String(errors));
  if (loads.some(({ late }) => late > 0)) row('too late', ({ late }) => String(late));
  if (loads.some(({ truncated }) => truncated > 0))
    row('truncated', ({ truncated }) => String(truncated));
  for (const rcode of new Set(loads.flatMap((load) => [...load.rcodes.keys()])))
    row(rcodeName(rcode), (load) => String(load.rcodes.get(rcode) ?? 0));
  for (const q of quantiles)
    row(`p${q * 100}`, ({ latencies }) =>
      latencies.count === 0 ? '-' : printMs(latencies.quantile(q)),
    );
  row('longest', ({ latencies }) => (latencies.count === 0 ? '-' : printMs(latencies.max)));
  return `${[
    ...wrap(`${options.rate} queries/s for ${printSpan(options.lastsMs)}: ${what}`, '', {
      columns,
    }),
    '',
    ...aligned(rows),
    ...loads.flatMap((load, nth) =>
      load.latencies.count === 0 ? [] : ['', nameOf(options, nth), ...picture(load, columns)],
    ),
  ].join('\n')}\n`;
}

/** A histogram with one bar per non-empty row. */
function picture({ latencies }: ServerLoad, columns: number): readonly string[] {
  const width = Math.min(BAR_MAX, Math.max(BAR_MIN, columns - BESIDE_BAR));
  const counts = latencies.between(bounds);
  const most = Math.max(1, ...counts);
  return counts.flatMap((count, nth) => {
    if (count === 0) return [];
    const bound = bounds[nth];
    const label =
      bound === undefined ? `more than ${printMs(bounds.at(-1)!)}` : `up to ${printMs(bound)}`;
    const bar = '#'.repeat(Math.max(1, Math.round((count / most) * width)));
    return [
      `  ${label.padStart(17)}  ${bar.padEnd(width)}  ${((100 * count) / latencies.count).toFixed(2)} %`,
    ];
  });
}

function printMs(ms: number): string {
  return ms < 1 ? `${Math.round(ms * 1000)} µs` : `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
