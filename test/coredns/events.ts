import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a test of CoreDNS wanted to be set up, and whether it was. */
export interface SetupEvent {
  readonly kind: 'setup';
  /** Name of the test function. */
  readonly test: string;
  readonly place: string;
  readonly plugin: string;
  /** The directive, as the test wrote it. */
  readonly input: string;
  /** Keys of the server block; none: the root zone. */
  readonly keys?: readonly string[];
  /** Files that the directive names, by path. */
  readonly files?: Readonly<Record<string, string>>;
  readonly refused: boolean;
  readonly error?: string;
}

/** A query given to a plugin, and what was written. Messages are Base64. */
export interface Written {
  /** Folder of the plugin; empty: what the test put behind it. */
  readonly plugin: string;
  /** null: it cannot be packed. */
  readonly query: string | null;
  readonly replies: readonly string[] | null;
  readonly rcode: number;
  readonly error?: string;
  readonly garbled?: boolean;
  /** Milliseconds. */
  readonly took?: number;
  /** What the plugin asked its neighbours meanwhile. */
  readonly next?: readonly Written[];
}

/** How the plugin of an exchange was set up. */
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
  /** What a Corefile cannot say of it. */
  readonly beyond?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A query that a test gave to a plugin. */
export interface ServeEvent extends Written {
  readonly kind: 'serve';
  readonly test: string;
  readonly place: string;
  /** Which of the handlers of the test's process; 0: one that is not told from others. */
  readonly handler: number;
  readonly state: State;
  /** `udp IP:PORT`, as text. */
  readonly remote: string;
  readonly local: string;
  readonly log?: string;
  readonly panic?: string;
  /** Exchanges of one handler with the same number were under way at the same time. */
  readonly together: number;
  /** What upstreams were asked meanwhile; `plugin` is the address. */
  readonly upstreams?: readonly Written[];
}

export type Event = SetupEvent | ServeEvent;

/** All that the recorder (recorder/src/record.go) has written into a folder, one list for each tested package. */
export function readEvents(folder: string): Event[][] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) =>
      readFileSync(join(folder, name), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Event),
    );
}
