/** Feeds packets to the live model and advances its clock. */
import type { LiveInput } from '../../../tools/watch/live-input.ts';
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import type { Input } from '../../../tools/capture/read/recognised-input.ts';
import { Remarks } from '../../../tools/capture/read/packets/remarks.ts';
import { usualPorts, type Reading } from '../../../tools/capture/read/reading.ts';
import { statSync } from 'node:fs';
import { printHostPort } from '../../../server/base/ip.ts';
import { every, type Clock, type Timer } from '../../../server/base/clock.ts';
import { printShare } from './figures.ts';
import { problemsIn, Problem } from '../../../server/base/problem.ts';
import { captureDnstap, capturePackets, type LiveCapture } from '../capture/capture-live.ts';
import type { Io } from '../command.ts';
import { openGiven } from '../named-capture.ts';
import { pacedChunks, ReplayPace } from './replay-pace.ts';
import { serverTokenOf, type LiveSources } from './live-options.ts';
import { directStream } from './direct-stream.ts';
import { ReplicaStreams } from './replica-streams.ts';
import { peerOf, ServerStream } from './server-stream.ts';
import { turnsOfThread, type StreamTurns } from './stream-turns.ts';

/** Interval at which the model's time advances, milliseconds. */
const TICK_MS = 250;
/** Data from a pipe counts as live if its first packet is at most this old, in milliseconds. */
const FRESH_MS = 60_000;

export interface PacketFeed {
  /** Display name: `any, port 53`. */
  readonly name: string;
  /** Replay speed for files, or null if the traffic is live. */
  readonly pace: ReplayPace | null;
  /** `43 %` of the current file, or empty if unknown. */
  readonly progress: string;
  /** True once all input has been read. */
  readonly isOver: boolean;
  /** Resolves once something was read from files; at once for pipes and live traffic. Rejects like `over`. */
  readonly begun: Promise<void>;
  /** Resolves when all input has been read or `stop` was called. Rejects if nothing was readable. */
  readonly over: Promise<void>;
  stop(): void;
}

export type FeedOptions = LiveSources & { readonly speed: number };

/**
 * Starts reading.
 * @param turns shared by all feeds of a process
 * @throws Problem if live capture is not possible
 */
export async function startFeed(
  options: FeedOptions,
  model: LiveModel,
  clock: Clock,
  io: Pick<Io, 'env' | 'signal'>,
  turns: StreamTurns = turnsOfThread(clock),
): Promise<PacketFeed> {
  return options.files.length > 0
    ? new FileFeed(options, model, clock)
    : LiveFeed.start(options, model, clock, io, turns);
}

interface NamedSource {
  readonly name: string;
  readonly capture: Pick<LiveCapture, 'dropped' | 'stop'>;
  readonly input: LiveInput;
}

interface SourceParts {
  readonly model: LiveModel;
  readonly clock: Clock;
  readonly turns: StreamTurns;
  readonly token: () => string;
}

/** Feeds packets from an interface, dnstap, and data from ndots servers into the model. */
class LiveFeed implements PacketFeed {
  readonly pace: null = null;
  readonly progress: string = '';
  readonly begun: Promise<void> = Promise.resolve();
  isOver = false;
  readonly over: Promise<void>;
  readonly #sources: readonly NamedSource[];
  readonly #replicas: ReplicaStreams | null;
  readonly #timer: Timer;
  #ended: () => void = () => undefined;

  private constructor(
    sources: readonly NamedSource[],
    replicas: ReplicaStreams | null,
    model: LiveModel,
    clock: Clock,
  ) {
    this.#sources = sources;
    this.#replicas = replicas;
    this.over = new Promise((resolve) => (this.#ended = resolve));
    this.#timer = every(clock, TICK_MS, () => {
      for (const { capture, input } of sources) input.lostByKernel(capture.dropped());
      replicas?.tick();
      model.advance(clock.wall());
    });
  }

  static async start(
    options: FeedOptions,
    model: LiveModel,
    clock: Clock,
    io: Pick<Io, 'env' | 'signal'>,
    turns: StreamTurns,
  ): Promise<LiveFeed> {
    const { ports, replicas: choice } = options;
    const token = serverTokenOf(options, io.env);
    model.advance(clock.wall());
    const sources: NamedSource[] = [];
    try {
      await openSources(options, { model, clock, turns, token }, (source) => sources.push(source));
      const parts = { token, ports: ports ?? usualPorts, model, clock, io, turns };
      const replicas = choice === null ? null : await ReplicaStreams.start({ choice, ...parts });
      return new LiveFeed(sources, replicas, model, clock);
    } catch (error) {
      stopSources(sources);
      throw error;
    }
  }

  get name(): string {
    const names = this.#sources.map((source) => source.name);
    return [...names, ...(this.#replicas === null ? [] : [this.#replicas.name])].join(', ');
  }

  stop(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#timer.cancel();
    stopSources(this.#sources);
    this.#replicas?.stop();
    this.#ended();
  }
}

/** @param opened receives each source at once, so that it can be stopped if a later one fails */
async function openSources(
  { device, netns, dnstap, ports, servers }: FeedOptions,
  { model, clock, turns, token }: SourceParts,
  opened: (source: NamedSource) => void,
): Promise<void> {
  const own = ports ?? usualPorts;
  if (device !== null) {
    const taken: { input?: LiveInput } = {};
    const capture = capturePackets(
      { device, netns, ports: own },
      (bytes, start, end, timeMs, port) =>
        taken.input?.reading.takeNetwork(bytes, start, end, timeMs, port),
      (why) => (why === null ? taken.input?.back() : taken.input?.away(why)),
    );
    taken.input = model.open(capture.name, { ports: own });
    opened({ name: capture.name, capture, input: taken.input });
  }
  if (dnstap !== null) {
    const input = model.open(`dnstap at ${dnstap}`);
    const capture = await captureDnstap(dnstap, input.reading);
    opened({ name: capture.name, capture, input });
  }
  for (const server of servers) {
    const name = printHostPort(server.host, server.port);
    const input = model.open(`server ${name}`, { ports: own, server: peerOf(server) });
    const open = directStream(server, token, clock);
    const parts = { server, open, input, clock, model, turn: turns.open() };
    opened({ name, capture: new ServerStream(parts), input });
  }
}

function stopSources(sources: readonly NamedSource[]): void {
  for (const { capture, input } of sources) {
    capture.stop();
    input.lostByKernel(capture.dropped());
    input.close();
  }
}

/** Feeds files into the model one after another at a given speed, or data from a pipe. */
class FileFeed implements PacketFeed {
  readonly name: string;
  readonly pace: ReplayPace;
  readonly begun: Promise<void>;
  readonly over: Promise<void>;
  isOver = false;
  readonly #begin: () => void;
  readonly #files: readonly string[];
  readonly #model: LiveModel;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #input: Input | null = null;
  #live: LiveInput | null = null;
  readonly #ports: readonly number[];
  #isNow = false;

  constructor({ files, speed, ports }: FeedOptions, model: LiveModel, clock: Clock) {
    this.#ports = ports ?? usualPorts;
    const [first = '-'] = files;
    const own = first === '-' ? 'standard input' : (first.split('/').at(-1) ?? first);
    this.name = files.length > 1 ? `${own} and ${files.length - 1} more` : own;
    this.pace = new ReplayPace(clock, speed);
    this.#files = files;
    this.#model = model;
    this.#clock = clock;
    const reads = Promise.withResolvers<void>();
    this.#begin = reads.resolve;
    if (!files.every(isRegularOrMissing)) this.#begin();
    const timer = every(clock, TICK_MS, () => this.#advance());
    this.over = this.#run().finally(() => {
      timer.cancel();
      this.isOver = true;
    });
    // Marks the rejection as handled, so that the process survives callers that never await `over`.
    this.over.catch(() => undefined);
    this.begun = Promise.race([reads.promise, this.over]);
    this.begun.catch(() => undefined);
  }

  get progress(): string {
    const { size, taken } = this.#input ?? { size: null, taken: () => 0 };
    return size === null || size === 0 ? '' : printShare(taken() / size);
  }

  stop(): void {
    this.#stop.abort();
    this.pace.stop();
    this.#input?.close();
  }

  async #run(): Promise<void> {
    let read = 0;
    let failed: unknown = null;
    for (const path of this.#files) {
      if (this.#stop.signal.aborted) return;
      try {
        await this.#file(path);
        read++;
      } catch (error) {
        if (problemsIn(error) === null) throw error;
        failed ??= error;
      }
    }
    // A remark is enough if only some of the files are unreadable.
    if (read === 0 && failed !== null) throw failed;
  }

  async #file(path: string): Promise<void> {
    const { signal } = this.#stop;
    const name = path === '-' ? 'standard input' : path;
    const remarks = new Remarks();
    let live: LiveInput | null = null;
    try {
      const input = await openGiven(path, remarks, signal);
      this.#input = input;
      // A log that is still growing may have no timestamps, so its lines get the current time.
      const time = input.size === null && input.format === 'text' ? 'now' : 'own';
      // Lines without timestamps get the model's time, so set that first.
      if (time === 'now') this.#model.advance(this.#clock.wall());
      live = this.#model.open(name, { time, ports: this.#ports });
      this.#live = live;
      await this.#read(input, live.reading, time);
      for (const { text, first, count } of remarks.list)
        live.reading.remarks.add(text, first, count);
      live.close();
      this.#advance();
      await this.#model.complete();
    } catch (error) {
      live ??= this.#model.open(name, { time: 'own' });
      live.close(problemsIn(error)?.[0]?.message ?? 'it cannot be read');
      throw error;
    }
  }

  async #read(input: Input, reading: Reading, time: 'now' | 'own'): Promise<void> {
    const { signal } = this.#stop;
    const chunks =
      input.size === null
        ? input.chunks
        : pacedChunks(input.chunks, this.pace, () => {
            this.#advance();
            if (isRead(reading)) this.#begin();
            return reading.totals.lastMs;
          });
    this.#isNow = time === 'now';
    try {
      await reading.read({ ...input, chunks }, () => signal.aborted);
    } finally {
      this.#isNow = false;
      input.close();
    }
    if (!signal.aborted && !isRead(reading)) throw nothingIn(input);
  }

  /** Advances the model's time to that of the packets or, for a pipe, to this machine's. */
  #advance(): void {
    const wall = this.#clock.wall();
    if (this.#isNow) return this.#model.advance(wall);
    const lastMs = this.#live?.reading.totals.lastMs ?? -Infinity;
    if (!Number.isFinite(lastMs)) return;
    const isFresh = this.#input?.size === null && Math.abs(wall - lastMs) < FRESH_MS;
    const reached = isFresh ? wall : (this.pace.reachedMs ?? lastMs);
    this.#model.advance(Math.max(lastMs, this.isOver ? lastMs : reached));
  }
}

function isRead({ totals: { exchanges, frames, messages } }: Reading): boolean {
  return exchanges + frames + messages > 0;
}

/** False for standard input and pipes, whose first bytes may take long. */
function isRegularOrMissing(path: string): boolean {
  return path !== '-' && statSync(path, { throwIfNoEntry: false })?.isFile() !== false;
}

function nothingIn({ name, format }: Input): Problem {
  return new Problem({
    code: 'capture-unreadable',
    text:
      format === 'empty'
        ? `${name} is empty`
        : `${name} is not a capture, a dnstap stream or a query log`,
    remedy: 'ndots top --help lists the formats; tcpdump -w FILE port 53 makes a capture.',
  });
}
