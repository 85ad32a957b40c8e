/**
 * What every resolver model has in common: what it is given and what it gives back.
 */
import type { Random } from '../base/random.ts';
import type { ClientNetwork } from './network.ts';
import type { Releases } from './releases.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { presented } from './search-list.ts';
import type { Trace } from './trace.ts';

/** IPv4 or IPv6. */
export type Family = 4 | 6;

/** Addresses and names of the machine or pod that asks. */
export interface Host {
  readonly hostname: string;
  /** Addresses of interfaces other than loopback, with their families. */
  readonly addresses: readonly string[];
  /** Whether loopback has 127.0.0.1 and ::1; a family without is switched off in the kernel. */
  readonly loopback: readonly Family[];
}

/** The files and variables that decide; null = the file does not exist. */
export interface Settings {
  readonly resolvConf: string | null;
  readonly nsswitch: string | null;
  readonly hosts: string | null;
  /** Text of the file that HOSTALIASES names. */
  readonly hostAliases: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly host: Host;
}

/** What a model works with. */
export interface ModelContext {
  readonly network: ClientNetwork;
  readonly random: Random;
  readonly trace: Trace;
  readonly settings: Settings;
}

/** One call of the application. */
export interface Request {
  readonly name: string;
  /** Which families are asked for: both = AF_UNSPEC. */
  readonly families: readonly Family[];
  /** AI_ADDRCONFIG: ask only for families that the host has. */
  readonly addrConfig: boolean;
}

/** Why a lookup failed, in the words of the interface that the application calls. */
export interface Failure {
  /** Symbol of the interface: `EAI_NONAME`, `ENOTFOUND`, `ARES_ETIMEOUT`, … */
  readonly code: string;
  /** Its number where the interface has numbers. */
  readonly number: number | null;
  /** What the application prints. */
  readonly text: string;
}

/** What a lookup gives to the application. Some clients give addresses beside a failure. */
export interface Found {
  readonly addresses: readonly string[];
  readonly failure: Failure | null;
}

/** One process: what it remembers lasts from lookup to lookup. */
export interface Session {
  lookup(request: Request): Promise<Found>;
}

/** What a model says and does; the rest of a `Client` is its label. */
export interface Model {
  /** One line: which function of which program this is. */
  readonly summary: string;
  /** Whether the order of A and AAAA is left to chance by the real client. */
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
  /** The releases that are known, oldest first; empty where the model has none. */
  readonly versions: readonly string[];
  /** The release of that version, or the nearest one, whose trace then says so; null = the newest. */
  at(version: string | null): Client;
}

/** A client whose releases differ by the traits of a table. */
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

/** A client that is modelled in one version only. */
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

/** The same client, which begins its trace with the note. */
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

/** The end of a lookup that succeeded. */
export function found(addresses: readonly string[]): Found {
  return { addresses, failure: null };
}

/** The end of a lookup that failed; the arguments are the fields of `Failure`. */
export function failed(code: string, number: number | null, text: string): Found {
  return { addresses: [], failure: { code, number, text } };
}

/** A 16-bit id that is none of `taken`. */
export function newId(random: Random, taken: ReadonlySet<number> = new Set()): number {
  for (;;) {
    const id = random.integer(0x10000);
    if (!taken.has(id)) return id;
  }
}

/** The name as it is shown: with its final dot, bytes beyond ASCII escaped. */
export function absolute(name: string): string {
  return presented(name.endsWith('.') ? name : `${name}.`);
}

/** Dots of a name: what ndots is compared with. */
export function countDots(name: string): number {
  let dots = 0;
  for (const letter of name) if (letter === '.') dots++;
  return dots;
}
