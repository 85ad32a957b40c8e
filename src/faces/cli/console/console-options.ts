/** The command line of `ndots console`. */
import type { LiveLimits } from '../../../tools/watch/live-limits.ts';
import { privacyLevels, type PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import { trafficOptions } from '../capture/traffic-options.ts';
import {
  clusterGiven,
  namesCluster,
  ownerOptions,
  type ClusterOptions,
} from '../cluster-options.ts';
import { liveSourceOptions } from '../live-source-options.ts';
import {
  limitsOf,
  liveSourcesOf,
  serverOptions,
  speedOption,
  windowOptions,
  type LiveSources,
} from '../live/live-options.ts';
import { flag, group, many, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, listenAddress, text } from '../option-values.ts';

/** The command line of `ndots console`. */
export interface ConsoleOptions extends LiveSources, ClusterOptions {
  readonly manifests: string | null;
  readonly cluster: boolean;
  /** The speed of a replay, relative to the recorded time; Infinity: as fast as it can be read. */
  readonly speed: number;
  readonly limits: Partial<LiveLimits>;
  readonly listen: { readonly host: string; readonly port: number };
  /** Host names, in addition to the address, by which browsers may call the page. */
  readonly hosts: readonly string[];
  /** A file with the token; null: a new token at each start. */
  readonly tokenFile: string | null;
  readonly privacy: PrivacyLevel;
  /** The Corefile of the page Configuration; null: one is pasted there. */
  readonly corefile: string | null;
  readonly opens: boolean;
}

const table = {
  ...group('Where from', {
    ...liveSourceOptions,
    dnstap: trafficOptions.dnstap,
    ...serverOptions,
    ...speedOption,
  }),
  ...group('Names of pods', { ...ownerOptions }),
  ...group('How much', {
    ...windowOptions,
  }),
  ...group('Page', {
    listen: one('--listen', listenAddress(0), 'listen here (127.0.0.1, a free port)'),
    hosts: many('--host', text('NAME'), 'host name in the address of the page'),
    tokenFile: one(
      '--token-file',
      file(),
      'read the access token from FILE (default: a new one each start)',
    ),
    privacy: one(
      '--privacy',
      choice('LEVEL', privacyLevels),
      'full, no-clients (hide client addresses and pod names), or counts',
    ),
    corefile: one('--corefile', file(), 'the Corefile that the page Configuration shows'),
    noOpen: flag('--no-open', 'print the address only, open no browser'),
  }),
};

/** The help of `ndots console`. */
export const consoleUsage: Usage = {
  synopsis: '[-i INTERFACE | FILE…|-]',
  examples: [
    ['', 'watch this machine'],
    ['node7.pcap --speed max', 'show a capture at once'],
    ['--pid 4711 --cluster', 'watch one pod, and name the others'],
    ['--listen 127.0.0.1:8053 --no-open', 'for ssh -L or kubectl port-forward'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'The page is read-only. Its address contains an access token, and the page shows nothing without it.',
    'Files: as for ndots capture; - is standard input.',
    'Exit codes: 0 ended by Ctrl-C, 2 could not be read, 3 wrong usage. More: docs/console.md',
  ],
  words: { files: true },
};

const LOOPBACK = '127.0.0.1';

/** Throws a `Problem` with the code `usage`. */
export function parseConsoleOptions(given: readonly string[]): ConsoleOptions {
  const { values, words } = parseOptions(table, given);
  const sources = liveSourcesOf(values, words);
  return {
    ...sources,
    manifests: values.manifests,
    cluster: values.cluster || namesCluster(values),
    ...clusterGiven(values),
    speed: values.speed ?? 1,
    limits: limitsOf(values),
    listen: values.listen ?? { host: LOOPBACK, port: 0 },
    hosts: values.hosts,
    tokenFile: values.tokenFile,
    privacy: values.privacy ?? 'full',
    corefile: values.corefile,
    opens: !values.noOpen,
  };
}
