/** `ndots serve`: reads a Corefile, serves it, and shuts down in order. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { cpuCount } from '../../../server/base/cpu-count.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { systemClock } from '../../../server/base/clock.ts';
import {
  bugText,
  jsonLines,
  makeLog,
  type LinePrinter,
  type Log,
} from '../../../server/base/log.ts';
import { isBinary } from '../../../server/base/binary-text.ts';
import { Problem, Problems, problemsIn } from '../../../server/base/problem.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { memoryLimit } from '../../../server/runtime/memory-limit.ts';
import { MemoryPolicy } from '../../../server/runtime/memory-policy.ts';
import { lineOutput, type LineOutput } from '../../../server/base/line-output.ts';
import type { ParseOutput } from '../../../server/corefile/parse.ts';
import type { Syntax } from '../../../server/corefile/syntax.ts';
import { unblockUserSignal } from '../../../server/runtime/blocked-signals.ts';
import { descriptorLimit } from '../../../server/runtime/descriptor-limit.ts';
import {
  allowedCpus,
  keepOff,
  takeLongTurns,
  type Processors,
} from '../../../server/runtime/scheduling.ts';
import { endProcess } from '../../../server/runtime/end-process.ts';
import { endProcessNow, makeTermination } from '../../../server/runtime/termination.ts';
import { Collection } from '../../../server/metrics/collection.ts';
import { SharedRegistry } from '../../../server/metrics/shared-registry.ts';
import { showUnused } from '../../../server/plugins/unused-series.ts';
import type { MetricSample } from '../../../server/metrics/sample.ts';
import { probeEndpoint } from '../../../server/transport/probe.ts';
import { loadPlugins, order } from '../../../server/plugins/order.ts';
import { closeEarly } from '../../../server/engine/contract/early-http.ts';
import { workersWanted } from '../../../server/engine/contract/configuration.ts';
import { defaultWorkers, workerHeapMb } from '../../../server/engine/contract/worker-shares.ts';
import { sourcePortShare } from '../../../server/engine/control/descriptor-shares.ts';
import { Server } from '../../../server/engine/control/server.ts';
import { WORKER_THREAD } from '../../../server/engine/control/spare-thread.ts';
import { threadPort } from '../../../server/engine/control/worker-ports.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { openExample } from './example.ts';
import { builtInCorefile } from '../../../server/corefile/empty.ts';
import { parseCorefileText, parseStartedCorefile } from '../parse-corefile.ts';
import { removePidFile, writePidFile } from './pid-file.ts';
import { processSamples } from '../bench/process-samples.ts';
import { parseServeOptions, type ServeOptions } from './serve-options.ts';
import { coreVersion, versionText } from '../version/version.ts';
import { problemText } from '../problem-text.ts';

export const serve: Command = { name: 'serve', run };

/** `.ts` in a checkout, `.js` in the package. */
const extension = import.meta.url.slice(-3);

/** With more CPUs than this, some remain free for this thread and the runtime's helper threads anyway. */
const FEW_PROCESSORS = 8;

async function run(words: readonly string[], io: Io): Promise<number> {
  const options = parseServeOptions(words);
  if (options.version || options.plugins) {
    io.out(options.version ? versionText() : pluginList());
    return EXIT.ok;
  }
  const dnsPort = options.dnsPort ?? 53;
  const example = options.example ? await openExample(options.dnsPort ?? undefined) : null;
  const source =
    example === null
      ? await corefileSource(options.conf ?? undefined, dnsPort, io)
      : { file: example.file, directory: dirname(example.file), read: example.read };
  return serveCorefile({ options, source, io, greeting: example?.lines ?? null });
}

export interface Serving {
  readonly options: ServeOptions;
  readonly source: CorefileSource;
  readonly io: Io;
  /** Printed once the server is ready. */
  readonly greeting?: string | null;
  /** Runs before the Corefile is read, and may throw Problems. */
  readonly around?: (host: ServeHost) => Promise<ServeHooks>;
}

export interface ServeHost {
  readonly log: Log;
  reload(): void;
  /** Shuts the process down in order. */
  end(code: number): void;
}

export interface ServeHooks {
  /** Modifies the parsed Corefile, both at startup and at each reload. */
  change(parsed: ParseOutput): ParseOutput;
  /** True if another process is serving the same addresses and will release them. */
  readonly takesOver: boolean;
  /** Called when the server is ready. If this throws a Problem, the server ends. */
  serving(server: Server): Promise<void>;
  /** Called when shutdown begins, while everything is still being served. */
  ending(): Promise<void>;
  /** Called when nothing is being served any more, or never was. */
  ended(): Promise<void>;
}

/**
 * Serves until a signal or a fatal error.
 * @returns the exit code if the server could not start
 */
export async function serveCorefile(serving: Serving): Promise<number> {
  const { options, source, io, greeting = null, around } = serving;
  // This thread works for milliseconds at a time and workers for microseconds, so workers should not have to wait for
  // its turn to end.
  takeLongTurns();
  const processors = cpuCount() > FEW_PROCESSORS ? null : allowedCpus();
  const print = options.logFormat === 'json' ? jsonLines(systemClock) : null;
  const lines = lineOutput(1, (options.logBuffer ?? 1024) * 1024, print ?? undefined);
  const log = makeLog(
    (line) => lines.write(line),
    () => server?.debugging ?? false,
    print,
  );
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const onFatal = (text: string): void => {
    log.raw(`[FATAL] ${text}`);
    end(EXIT.no);
  };
  let hooks: ServeHooks | null = null;
  let server: Server | null = null;
  const quit = (code: number): void =>
    void (server?.quit() ?? Promise.resolve(true)).then(async (inOrder) => {
      await hooks?.ended();
      return leave(code, inOrder, lines);
    });
  const reload = (): void => void server?.reload();
  // Installed first, because process 1 in a container has no default signal actions and a signal may arrive while
  // objects are loading.
  onSignals(log, { end, quit, reload });
  process.once('uncaughtException', (error: Error) => {
    log.raw(`[FATAL] a bug: ${bugText(error)}`);
    quit(EXIT.no);
  });
  let serves: boolean;
  try {
    hooks = (await around?.({ log, reload, end })) ?? null;
    server = makeServer({ options, source, lines, log, env: io.env, onFatal, hooks, processors });
    // Shutdown must not wait for a start that is still loading objects.
    serves = await Promise.race([server.start().then(() => true), ended.then(() => false)]);
    // From here on, clients may be waiting. If there is another CPU, workers do not have to wait for this thread and
    // the runtime's helpers.
    closeEarly();
    if (serves && processors !== null) keepOff(processors, server.threads().length, WORKER_THREAD);
    if (serves) await hooks?.serving(server);
  } catch (error) {
    await lines.flushed(FLUSH_MS);
    const refused = refuse(error, io, print);
    // Everything has been closed by now, and the result shows whether a thread hangs.
    const inOrder = (await server?.quit()) ?? true;
    await hooks?.ended();
    await leave(refused, inOrder, lines);
    return refused;
  }
  if (serves) {
    // Written before any output, so that programs can rely on the file once they have read a line.
    if (options.pidfile !== null) writePidFile(options.pidfile, process.pid, log);
    if (!options.quiet) for (const line of startLines(server)) log.raw(line);
    if (server.endpoints.length === 0)
      log.warning('Nothing is served: the Corefile contains no server block');
    if (greeting !== null) log.raw(greeting);
    new MemoryPolicy({ clock: systemClock, thrifty: hooks !== null }).begin();
  }
  // Workers and HTTP servers do not keep the process alive, so this timer does.
  const alive = setInterval(() => undefined, 1 << 30);
  const code = await ended;
  clearInterval(alive);
  await hooks?.ending();
  // A fatal error (a forwarding loop) skips lameduck, because each second would make it worse.
  const inOrder = await (serves && code === EXIT.ok ? server.stop() : server.quit());
  await hooks?.ended();
  if (options.pidfile !== null) removePidFile(options.pidfile, process.pid);
  await leave(code, inOrder, lines);
  return code;
}

interface ServeParts {
  readonly options: ServeOptions;
  readonly source: CorefileSource;
  readonly lines: LineOutput;
  readonly log: Log;
  readonly env: Io['env'];
  readonly onFatal: (text: string) => void;
  readonly hooks: ServeHooks | null;
  /** CPUs for the workers. If null, the system chooses. */
  readonly processors: Processors | null;
}

function makeServer(parts: ServeParts): Server {
  const { options, source, lines, log, env, onFatal, hooks, processors } = parts;
  const { transport, hang, httpConnections, dnsPort } = options;
  const termination = makeTermination();
  const descriptors = descriptorLimit();
  const memory = memoryLimit();
  const count = cpuCount();
  const collection = new Collection();
  const server: Server = new Server({
    plugins: loadPlugins,
    collection,
    log,
    clock: systemClock,
    random: secureRandom,
    env,
    directory: source.directory,
    workers: (configuration) => options.workers ?? workersWanted(configuration, count),
    termination,
    descriptors,
    memory,
    ...(hang !== null && { hangMs: hang * 1000 }),
    ...(httpConnections !== null && { httpConnections }),
    ...(hooks?.takesOver !== true && { probe: probeEndpoint }),
    sharesHttp: hooks !== null,
    load(syntaxes) {
      // The hooks report an empty Corefile themselves.
      const mayBeBuiltIn = server.fingerprint === '' && hooks === null;
      const parsed = load(source, dnsPort ?? 53, env, syntaxes, mayBeBuiltIn);
      return hooks?.change(parsed) ?? parsed;
    },
    spawn: (id, workers) =>
      threadPort(
        {
          id,
          sourcePorts: sourcePortShare(descriptors, workers),
          transport: transport ?? 'auto',
          termination,
          ring: lines.ringOf(id),
          logFormat: options.logFormat ?? 'text',
          thrifty: hooks !== null,
          memory,
          ...(processors !== null && { processors }),
          pluginsModule: new URL(`../../../server/plugins/order${extension}`, import.meta.url).href,
        },
        // The first worker starts before the Corefile is read, which determines the number of workers.
        workerHeapMb(memory, Math.max(workers, options.workers ?? defaultWorkers(count))),
      ),
    onFatal,
  });
  collection.sample(processSamples(coreVersion, () => server.threads()));
  collection.sample(() => [lostLines(lines)]);
  showUnused(new SharedRegistry((event) => collection.add('unused', event)));
  return server;
}

/** The output of `-plugins`, in CoreDNS's format. */
export function pluginList(): string {
  const names = order.map(({ name }) => `  dns.${name}`).toSorted();
  return `Server types:\n  dns\n\nOther plugins:\n${names.join('\n')}\n`;
}

/** Maximum time to flush the log on exit, in milliseconds. */
const FLUSH_MS = 2000;

/** @param inOrder false if a thread hangs, because `process.exit` would wait for it */
async function leave(code: number, inOrder: boolean, lines: LineOutput): Promise<void> {
  const read = await lines.flushed(FLUSH_MS);
  // An unread line blocks a pool thread, which the exit would also wait for.
  if (!inOrder || !read) endProcessNow(inOrder || code !== EXIT.ok ? code : EXIT.no);
  endProcess(code);
}

function lostLines({ lost }: LineOutput): MetricSample {
  return {
    name: 'ndots_log_lost_lines_total',
    kind: 'counter',
    help: 'Log lines lost because standard output was not read fast enough.',
    labels: {},
    value: lost,
  };
}

/**
 * Reports a configuration that cannot be served. Every problem goes to standard error, either in the log format or, as
 * in CoreDNS, without a timestamp.
 */
function refuse(error: unknown, io: Io, print: LinePrinter | null): number {
  const problems = problemsIn(error);
  if (problems === null) throw error;
  const warnings = error instanceof Problems ? error.warnings : [];
  for (const each of problems)
    io.err(`${print === null ? problemText(each) : print(`[ERROR] ${each.print()}`)}\n`);
  for (const each of warnings) {
    io.err(
      `${print === null ? `[WARNING] ${problemText(each)}` : print(`[WARNING] ${each.print()}`)}\n`,
    );
  }
  return EXIT.no;
}

export interface CorefileSource {
  /** File name for people and messages. */
  readonly file: string;
  readonly directory: string;
  read(): string;
}

/**
 * The source of the Corefile: the `-conf` file, standard input, or the default file.
 * @param conf `stdin` for standard input
 */
export async function corefileSource(
  conf: string | undefined,
  port: number,
  io: Io,
): Promise<CorefileSource> {
  const directory = process.cwd();
  if (conf === 'stdin') {
    const text = await io.stdin('Corefile', FILE_MAX.corefile);
    return { file: 'stdin', directory, read: () => text };
  }
  const file = conf ?? 'Corefile';
  if (conf === undefined && !existsSync(file))
    return { file: 'Corefile', directory, read: () => builtInCorefile(port) };
  return { file, directory: dirname(resolve(file)), read: () => readCorefile(file) };
}

function load(
  { file, read }: CorefileSource,
  dnsPort: number,
  env: Io['env'],
  syntaxes: readonly Syntax[],
  mayBeBuiltIn: boolean,
): ParseOutput {
  const text = read();
  const parse = mayBeBuiltIn ? parseStartedCorefile : parseCorefileText;
  const parsed = parse({ file, text, dnsPort, env, syntaxes });
  // CoreDNS accepts any bytes in comments, so a file only counts as binary if parsing fails as well.
  if (parsed.problems.length === 0 || !isBinary(text)) return parsed;
  throw new Problem({
    code: 'corefile-unreadable',
    text: `loading Caddyfile via flag: ${file} is not a Corefile: it is binary`,
    remedy: `Check that it is the right file: head -c 300 ${file}`,
  });
}

function readCorefile(file: string): string {
  try {
    return readFileText(file, FILE_MAX.corefile);
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const [why, remedy] = unreadable[code] ?? [message, `Check the path: ls -l ${file}`];
    throw new Problem({
      code: 'corefile-unreadable',
      text: `loading Caddyfile via flag: open ${file}: ${why}`,
      hint: 'The Corefile given with -conf could not be read.',
      remedy: remedy.replace('FILE', file),
      cause: error,
    });
  }
}

/** System error codes with their message and fix. */
const unreadable: Readonly<Record<string, readonly [string, string]>> = {
  ENOENT: ['no such file or directory', 'Check the path: ls -l FILE'],
  ENOTDIR: ['not a directory', 'Check the path: one of its components is a file.'],
  EACCES: ['permission denied', 'Check the permissions: namei -l FILE; id'],
  EISDIR: ['is a directory', 'Specify the file in it: -conf FILE/Corefile'],
  ENOTREG: ['is not a regular file', 'Write it to a file, or pass it through a pipe: -conf stdin'],
  EFBIG: ['is larger than 1 MiB', 'Check that it is the right file: head -c 300 FILE'],
};

/** CoreDNS's startup lines. They show each `zone:port`, with its scheme and bound address if any, then the version. */
function startLines(server: Server): readonly string[] {
  const lines = server.endpoints.flatMap(({ scheme, address, port, zones }) =>
    zones.map(({ zone }) => {
      const where = scheme === 'dns' ? '' : `${scheme}://`;
      return `${where}${zone}:${port}${address === '' ? '' : ` on ${address}`}`;
    }),
  );
  return [...new Set(lines)].toSorted().concat(versionText().trimEnd());
}

interface Handles {
  /** Shuts down in order, starting with lameduck. */
  readonly end: (code: number) => void;
  /** Shuts down without lameduck. */
  readonly quit: (code: number) => void;
  readonly reload: () => void;
}

function onSignals(log: Log, { end, quit, reload }: Handles): void {
  let interrupted = false;
  const handlers: Readonly<Record<string, () => void>> = {
    SIGINT: () => {
      if (interrupted) return quit(2);
      interrupted = true;
      log.info('SIGINT: Shutting down');
      end(EXIT.ok);
    },
    SIGTERM: () => {
      log.info('SIGTERM: Shutting down servers then terminating');
      end(EXIT.ok);
    },
    SIGQUIT: () => quit(0),
    SIGHUP: () => log.info('SIGHUP: Ignored'),
    SIGUSR1: () => {
      log.info('SIGUSR1: Reloading');
      reload();
    },
    SIGUSR2: () => log.info('SIGUSR2: Ignored (replace the process instead)'),
  };
  // The handlers stay in place during lameduck. Ignored signals remain ignored, and SIGQUIT or a second SIGINT ends the
  // process immediately.
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  const blocked = process.execArgv.includes('--disable-sigusr1');
  if (blocked && !unblockUserSignal())
    log.warning('SIGUSR1 is blocked: the server cannot reload without the koffi package');
}
