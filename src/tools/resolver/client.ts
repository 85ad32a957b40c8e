/** What all resolver models have in common: their input and their output. */
import type { Random } from '../../server/base/random.ts';
import type { ClientNetwork } from './network.ts';
import type { Releases } from './releases.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { presented } from './search-list.ts';
import type { Trace } from './trace.ts';

/** IPv4 or IPv6. */
export type AddressFamily = 4 | 6;

/** Addresses and names of the machine or pod that asks. */
export interface Host {
  readonly hostname: string;
  /** Addresses of interfaces other than loopback, with their families. */
  readonly addresses: readonly string[];
  /**
   * Families of the loopback interface's addresses (127.0.0.1, ::1); a missing family is disabled
   * in the kernel.
   */
  readonly loopback: readonly AddressFamily[];
}

/** The files and environment variables that determine a lookup; null: the file does not exist. */
export interface Settings {
  readonly resolvConf: string | null;
  readonly nsswitch: string | null;
  readonly hosts: string | null;
  /** Text of the file that HOSTALIASES names. */
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: Host;
}

/** What a model needs from outside. */
export interface ModelContext {
  readonly network: ClientNetwork;
  readonly random: Random;
  readonly trace: Trace;
  readonly settings: Settings;
}

/** One lookup call of the application. */
export interface Request {
  readonly name: string;
  /** The address families asked for; both for AF_UNSPEC. */
  readonly families: readonly AddressFamily[];
  /** AI_ADDRCONFIG: ask only for families that the host has. */
  readonly addrConfig: boolean;
}

/** Why a lookup failed, in terms of the interface that the application calls. */
export interface LookupFailure {
  /** The interface's symbol for the error: `EAI_NONAME`, `ENOTFOUND`, `ARES_ETIMEOUT`, … */
  readonly code: string;
  /** The error's number; null if the interface has no numbers. */
  readonly number: number | null;
  /** The message that the application prints. */
  readonly text: string;
}

/**
 * What a lookup returns to the application. Some clients return addresses together with a failure.
 */
export interface LookupOutcome {
  readonly addresses: readonly string[];
  readonly failure: LookupFailure | null;
}

/** One process of the client, which may remember things from one lookup to the next. */
export interface Session {
  lookup(request: Request): Promise<LookupOutcome>;
}

/** The model of a client without its name and version. */
export interface Model {
  /** One line that says which function of which program this is. */
  readonly summary: string;
  /** Whether the real client sends A and AAAA in an unpredictable order. */
  readonly anyOrder: boolean;
  /** resolv.conf as this client reads it. */
  conf(settings: Settings): ResolvConf;
  open(context: ModelContext): Session;
}

/** One release of a client. */
export interface Client extends Model {
  /** `glibc`, `c-ares`, … */
  readonly name: string;
  /** Empty where the model has no versions. */
  readonly version: string;
}

/** A client with all its releases. */
export interface ClientLine {
  readonly name: string;
  /** The known releases, oldest first; empty if the model has none. */
  readonly versions: readonly string[];
  /**
   * The release with that version, or the nearest one, whose traces then begin with a note; null:
   * the newest.
   */
  at(version: string | null): Client;
}

/** A client whose releases differ in the traits of a table. */
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

/** A client that is modelled in a single version. */
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

/** The same client; each of its traces begins with the note. */
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

/** The outcome of a lookup that succeeded. */
export function found(addresses: readonly string[]): LookupOutcome {
  return { addresses, failure: null };
}

/** The outcome of a lookup that failed; the arguments are the fields of `LookupFailure`. */
export function failed(code: string, number: number | null, text: string): LookupOutcome {
  return { addresses: [], failure: { code, number, text } };
}

/** A random 16-bit query id that is not in `taken`. */
export function newId(random: Random, taken: ReadonlySet<number> = new Set()): number {
  for (;;) {
    const id = random.integer(0x10000);
    if (!taken.has(id)) return id;
  }
}

/** The name in the form that is displayed: with its final dot, bytes beyond ASCII escaped. */
export function absolute(name: string): string {
  return presented(name.endsWith('.') ? name : `${name}.`);
}

/** The number of dots in a name, which is compared with ndots. */
export function countDots(name: string): number {
  let dots = 0;
  for (const letter of name) if (letter === '.') dots++;
  return dots;
}
