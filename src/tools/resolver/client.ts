/** The input and output interface shared by all resolver models. */
import type { Random } from '../../server/base/random.ts';
import type { ClientNetwork, QueryToSend } from './network.ts';
import type { Releases } from './releases.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { presented } from './search-list.ts';
import type { Trace } from './trace.ts';

export type AddressFamily = 4 | 6;

export interface Host {
  readonly hostname: string;
  /** Addresses on interfaces other than loopback. */
  readonly addresses: readonly string[];
  /** The loopback interface's address families (127.0.0.1, ::1). If one is missing, it is disabled in the kernel. */
  readonly loopback: readonly AddressFamily[];
}

/** The files and environment variables that affect a lookup. Null if the file does not exist. */
export interface Settings {
  readonly resolvConf: string | null;
  readonly nsswitch: string | null;
  readonly hosts: string | null;
  /** The contents of the HOSTALIASES file. */
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: Host;
}

export interface ModelContext {
  readonly network: ClientNetwork;
  readonly random: Random;
  readonly trace: Trace;
  readonly settings: Settings;
  /** Go: goroutines run in the order in which they were started. Usually, the last one runs first. */
  readonly startsInOrder?: boolean;
}

/** A single lookup call by the application. */
export interface Request {
  readonly name: string;
  /** Both for AF_UNSPEC. */
  readonly families: readonly AddressFamily[];
  /** AI_ADDRCONFIG: only queries families that the host has. */
  readonly addrConfig: boolean;
}

/** In terms of the API that the application calls. */
export interface LookupFailure {
  /** The API's symbol for the error, such as `EAI_NONAME`, `ENOTFOUND` or `ARES_ETIMEOUT`. */
  readonly code: string;
  /** Null if the API has no error numbers. */
  readonly number: number | null;
  /** The message that the application prints. */
  readonly text: string;
}

/** The result that the application receives. Some clients return addresses together with a failure. */
export interface LookupOutcome {
  readonly addresses: readonly string[];
  readonly failure: LookupFailure | null;
}

/** One client process, which may keep state between lookups. */
export interface Session {
  lookup(request: Request): Promise<LookupOutcome>;
}

/** A client's model, without name and version. */
export interface Model {
  /** One line naming the function and the program. */
  readonly summary: string;
  /** True if the order in which the real client sends A and AAAA is unpredictable. */
  readonly anyOrder: boolean;
  /** Parses resolv.conf as this client does. */
  conf(settings: Settings): ResolvConf;
  open(context: ModelContext): Session;
}

export interface Client extends Model {
  /** `glibc`, `c-ares`, … */
  readonly name: string;
  /** Empty if the model has no versions. */
  readonly version: string;
}

export interface ClientLine {
  readonly name: string;
  /** Oldest first; empty if the model has none. */
  readonly versions: readonly string[];
  /**
   * Returns the release with that version, or the newest for null. If it does not exist, returns the nearest release,
   * and a note at the start of its traces says so.
   */
  at(version: string | null): Client;
}

/** Builds a client whose releases are described by a table of traits. */
export function clientLine<Traits extends object>(
  name: string,
  releases: Releases<Traits>,
  make: (version: string, traits: Traits) => Model,
): ClientLine {
  return {
    name,
    versions: releases.versions,
    at(asked) {
      const { version, traits, note } = releases.pick(asked);
      return noted({ ...make(version, traits), name, version }, note);
    },
  };
}

export function soleClient(name: string, model: Model): ClientLine {
  return {
    name,
    versions: [],
    at(asked) {
      const note = asked === null ? null : `${name} is modelled without versions: ${asked} is not.`;
      return noted({ ...model, name, version: '' }, note);
    },
  };
}

/** Makes all of its traces begin with the note. */
function noted(client: Client, note: string | null): Client {
  if (note === null) return client;
  return {
    ...client,
    open(context) {
      context.trace.step(note);
      return client.open(context);
    },
  };
}

export function found(addresses: readonly string[]): LookupOutcome {
  return { addresses, failure: null };
}

/** Builds a failed result from the fields of `LookupFailure`. */
export function failed(code: string, number: number | null, text: string): LookupOutcome {
  return { addresses: [], failure: { code, number, text } };
}

/** Returns a random 16-bit query ID that is not in `taken`. */
export function newId(random: Random, taken: ReadonlySet<number> = new Set()): number {
  for (;;) {
    const id = random.integer(0x10000);
    if (!taken.has(id)) return id;
  }
}

/** Builds a query without EDNS. */
export function plainQuery(
  random: Random,
  { name, type, why }: Pick<QueryToSend, 'name' | 'type' | 'why'>,
): QueryToSend {
  return { id: newId(random), name: absolute(name), type, edns: null, ad: false, why };
}

/** The name to display, with a trailing dot and escaped non-ASCII bytes. */
export function absolute(name: string): string {
  return presented(name.endsWith('.') ? name : `${name}.`);
}

export function countDots(name: string): number {
  let dots = 0;
  for (const letter of name) if (letter === '.') dots++;
  return dots;
}
