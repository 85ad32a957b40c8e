/** Serves one of the two configurations in this process, in virtual time, and queries it. */
import { parseAddress } from '../../server/base/ip.ts';
import { systemClock } from '../../server/base/clock.ts';
import { makeLog } from '../../server/base/log.ts';
import { Problems, type Problem } from '../../server/base/problem.ts';
import { seededRandom } from '../../server/base/random.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { ParseOutput } from '../../server/corefile/parse.ts';
import type { Syntax } from '../../server/corefile/syntax.ts';
import { promisedUpstream, type Network } from '../../server/transport/upstream-address.ts';
import { ExchangeError } from '../../server/transport/upstream/upstream-exchange.ts';
import type { Plugin } from '../../server/engine/contract/plugin.ts';
import { within } from '../../server/engine/control/time-limit.ts';
import { EmbeddedServer } from '../../server/engine/embedded.ts';
import { rcodeName, typeName } from '../../server/wire/iana.ts';
import { readMessage, writeQuery, type DnsRecord } from '../../server/wire/message.ts';
import { printName } from '../../server/wire/name.ts';
import { flagNames, printData } from '../../server/wire/print.ts';
import type { ServedConfiguration } from './compare.ts';
import { prepare, type PreparedCorefile } from './prepare.ts';
import type { PrintedRecord, QueryOutcome, DiffQuestion } from './question.ts';
import { scriptedReply } from './script.ts';

export interface SideParts {
  /** The base directory for relative paths. */
  readonly directory: string;
  /** The directory with Kubernetes objects. */
  readonly manifests: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly plugins: (names?: ReadonlySet<string>) => Promise<readonly Plugin[]>;
  readonly load: (syntaxes: readonly Syntax[]) => ParseOutput;
}

/** Time limit for reading objects, in milliseconds of real time. */
const READING_MS = 10_000;

export class Side implements ServedConfiguration {
  readonly #clock: VirtualClock = new VirtualClock();
  readonly #embedded: EmbeddedServer;
  readonly #path: { block: string; plugin: string } = { block: '', plugin: '' };
  readonly #asked: string[] = [];
  /** Keyed by block, name and type. A negative answer covers all types. */
  readonly #origins = new Map<string, string>();
  #prepared: PreparedCorefile | null = null;
  #silent = false;

  constructor(parts: SideParts) {
    this.#embedded = new EmbeddedServer({
      plugins: async (names) => (await parts.plugins(names)).map((each) => this.#watched(each)),
      clock: this.#clock,
      random: seededRandom(1),
      log: makeLog(() => {}),
      env: parts.env,
      directory: parts.directory,
      load: (syntaxes) => {
        const output = parts.load(syntaxes);
        this.#prepared = prepare(output.corefile, parts.manifests);
        return { ...output, corefile: this.#prepared.corefile };
      },
      network: this.#upstreams(),
      operational: false,
      onFatal: () => {},
    });
  }

  /**
   * Starts the server.
   * @returns the problems that prevent serving; empty if it is serving
   */
  async start(): Promise<readonly Problem[]> {
    const started = this.#embedded.start().then(
      () => [],
      (error: unknown) => {
        if (error instanceof Problems) return error.problems;
        throw error;
      },
    );
    // Objects are read in real time, while the virtual clock is stopped.
    await within(systemClock, READING_MS, started);
    return this.#clock.run(started);
  }

  stop(): Promise<void> {
    return this.#clock.run(this.#embedded.stop());
  }

  /** The parts of this side that are not compared. */
  get left(): readonly string[] {
    return this.#prepared?.left ?? [];
  }

  /** The addresses and ports it listens on. */
  get places(): readonly { readonly address: string; readonly port: number }[] {
    return this.#embedded.open.map(({ address, port }) => ({ address: named(address), port }));
  }

  /** Silences upstreams, or lets them reply again. */
  silence(silent: boolean): void {
    this.#silent = silent;
  }

  /** Advances virtual time. */
  pass(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  async ask(question: DiffQuestion): Promise<QueryOutcome> {
    const { address, port, client, proto } = question;
    const open = this.#embedded.open.filter((each) => each.port === port);
    const place =
      open.find((each) => named(each.address) === address) ??
      open.find((each) => named(each.address) === '');
    if (place === undefined) return { ...nothing, rcode: 'no server' };
    this.#path.block = '';
    this.#path.plugin = '';
    this.#asked.length = 0;
    const sender = {
      proto,
      address: parseAddress(client)!,
      port: 40_000,
      local: address === '' ? '10.96.0.10' : address,
      localPort: port,
    };
    const reply = await this.#clock.run(
      this.#embedded.exchange(bytesOf(question), sender, place.server),
    );
    const upstreams = [
      ...new Set(this.#asked.flatMap((host) => this.#prepared?.upstreams.get(host) ?? [host])),
    ];
    const seen = {
      upstreams: upstreams.toSorted(),
      asked: new Set(this.#asked).size,
      block: this.#path.block,
      plugin: this.#answerer(question),
    };
    if (reply === null) return { ...nothing, ...seen, rcode: 'silence' };
    const message = readMessage(reply);
    const records = (section: readonly DnsRecord[]): readonly PrintedRecord[] =>
      section.map((record) => ({
        name: record.name,
        type: typeName(record.type),
        ttl: record.ttl,
        data: printData(record.type, record.data),
      }));
    return {
      ...seen,
      rcode: rcodeName(message.rcode),
      flags: flagNames(message.flags).filter((flag) => counted.has(flag)),
      answer: records(message.answer),
      authority: records(message.authority),
      additional: records(message.additional),
    };
  }

  /** The plugin that answered or that originally provided the cached answer. */
  #answerer({ name, type }: DiffQuestion): string {
    const { block, plugin } = this.#path;
    const keys = [`${block} ${name} ${type}`, `${block} ${name}`];
    if (plugin === 'cache')
      return keys.map((key) => this.#origins.get(key)).find((each) => each !== undefined) ?? plugin;
    for (const key of keys) this.#origins.set(key, plugin);
    return plugin;
  }

  /** Wraps a plugin so that each query is reported as it passes on. */
  #watched(plugin: Plugin): Plugin {
    const { setup } = plugin;
    if (setup === undefined) return plugin;
    const path = this.#path;
    return {
      ...plugin,
      setup: (options, context, next) => {
        const link = setup.call(plugin, options, context, next);
        const zone = `${context.zones[0] ?? ''}${context.view === '' ? '' : ` (view ${context.view})`}`;
        const { name } = plugin;
        return (query) => {
          path.block = zone;
          path.plugin = name;
          return link(query);
        };
      },
    };
  }

  #upstreams(): Network {
    return {
      upstream: (parts) =>
        promisedUpstream(
          parts,
          async (query, timeoutMs) => {
            this.#asked.push(parts.address.host);
            const name = printName(query.folded);
            if (this.#silent)
              await new Promise<never>((_resolve, reject) => {
                this.#clock.after(timeoutMs, () =>
                  reject(new ExchangeError('timeout', 'i/o timeout')),
                );
              });
            const room = parts.proto === 'udp' ? 1232 : 65_535;
            const { id, type } = query;
            const bytes = scriptedReply({ id, name, type, class: query.class }, room);
            return { bytes, truncated: (bytes[2]! & 2) !== 0, reused: false };
          },
          () => this.#clock.now(),
        ),
    };
  }
}

const counted: ReadonlySet<string> = new Set(['aa', 'tc', 'ra', 'ad']);

const nothing: QueryOutcome = {
  rcode: '',
  flags: [],
  answer: [],
  authority: [],
  additional: [],
  upstreams: [],
  asked: 0,
  block: '',
  plugin: '',
};

/** Drops an empty address and wildcard addresses. */
function named(address: string): string {
  return address === '0.0.0.0' || address === '::' ? '' : address;
}

function bytesOf({ name, type, class: qclass, udpSize, dnssecOk }: DiffQuestion): Uint8Array {
  return writeQuery({
    id: 4711,
    name,
    type,
    class: qclass,
    edns: udpSize === 0 ? null : { udpSize, version: 0, dnssecOk, options: [] },
  });
}
