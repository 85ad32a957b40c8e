import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A setup in one of CoreDNS's tests, and its result. */
export interface SetupEvent {
  readonly kind: 'setup';
  readonly test: string;
  readonly place: string;
  readonly plugin: string;
  /** The directive as written in the test. */
  readonly input: string;
  /** The server block's keys. If omitted, the root zone. */
  readonly keys?: readonly string[];
  /** Files that the directive refers to, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly refused: boolean;
  readonly error?: string;
}

/** A query to a plugin, and the reply. Messages are in Base64. */
export interface Written {
  /** The plugin's directory, or empty for the test's next handler. */
  readonly plugin: string;
  /** Null if the query cannot be packed. */
  readonly query: string | null;
  readonly replies: readonly string[] | null;
  readonly rcode: number;
  readonly error?: string;
  readonly garbled?: boolean;
  /** In milliseconds. */
  readonly took?: number;
  /** The queries that the plugin sent to the next handlers during that time. */
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
  /** The handler's number in the test process, or 0 if handlers cannot be distinguished. */
  readonly handler: number;
  readonly state: State;
  readonly remote: string;
  readonly local: string;
  readonly log?: string;
  readonly panic?: string;
  /** Exchanges by one handler with the same number were concurrent. */
  readonly together: number;
  /** The queries sent to upstreams during that time; `plugin` is the upstream's address. */
  readonly upstreams?: readonly Written[];
}

export type Event = SetupEvent | ServeEvent;

/** Reads the recorder's output (recorder/src/record.go) from a directory, one list per tested package. */
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
