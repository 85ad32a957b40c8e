import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The setup in a test of CoreDNS, and its result. */
export interface SetupEvent {
  readonly kind: 'setup';
  readonly test: string;
  readonly place: string;
  readonly plugin: string;
  /** The directive as the test wrote it. */
  readonly input: string;
  /** Keys of the server block; none: the root zone. */
  readonly keys?: readonly string[];
  /** Files that the directive names, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly refused: boolean;
  readonly error?: string;
}

/** A query for a plugin, and the reply. Messages are Base64. */
export interface Written {
  /** Directory of the plugin; empty: the next handler of the test. */
  readonly plugin: string;
  /** Null: it cannot be packed. */
  readonly query: string | null;
  readonly replies: readonly string[] | null;
  readonly rcode: number;
  readonly error?: string;
  readonly garbled?: boolean;
  /** Milliseconds. */
  readonly took?: number;
  /** Queries from the plugin to the next handlers during that time. */
  readonly next?: readonly Written[];
}

/** The setup of an exchange's plugin. */
export interface State {
  readonly keys?: readonly string[];
  readonly lines: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly objects?: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly namespace?: string };
  }[];
  readonly unsynced?: boolean;
  /** Unix milliseconds on the plugin's clock. */
  readonly now?: number;
  /** The part that a Corefile cannot express. */
  readonly beyond?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ServeEvent extends Written {
  readonly kind: 'serve';
  readonly test: string;
  readonly place: string;
  /** The number of the handler in the test's process; 0: not distinguishable. */
  readonly handler: number;
  readonly state: State;
  readonly remote: string;
  readonly local: string;
  readonly log?: string;
  readonly panic?: string;
  /** Exchanges of one handler with the same number were concurrent. */
  readonly together: number;
  /** Queries to upstreams during that time; `plugin` is the address. */
  readonly upstreams?: readonly Written[];
}

export type Event = SetupEvent | ServeEvent;

/** Reads the output of the recorder (recorder/src/record.go) from a directory, one list for each tested package. */
export function readEvents(directory: string): Event[][] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) =>
      readFileSync(join(directory, name), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Event),
    );
}
