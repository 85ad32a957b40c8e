/** The command line of `ndots console`. */
import { privacyLevels, type PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import { ADMIN_PORT } from '../cache/cache-options.ts';
import { trafficOptions } from '../capture/traffic-options.ts';
import { ownerOptions } from '../cluster-options.ts';
import { authOption, isDelegated } from '../delegated-access.ts';
import { liveSourceOptions } from '../live-source-options.ts';
import { clustersOptionsOf, type ClustersOptions } from '../live/live-clusters.ts';
import { contextsOption, serverOptions, speedOption, windowOptions } from '../live/live-options.ts';
import { beside, flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, hostAddress, listenAddress, text, usage } from '../option-values.ts';

export interface ConsoleOptions extends ClustersOptions {
  readonly listen: { readonly host: string; readonly port: number };
  /** Additional host names that browsers may use to open the page. */
  readonly hosts: readonly string[];
  /** File with the token. If null, a new token is created at each start. */
  readonly tokenFile: string | null;
  /** True if the API server decides about readers. */
  readonly isDelegated: boolean;
  readonly privacy: PrivacyLevel;
  /** The Corefile for the Configuration page, or null to let the user paste one. */
  readonly corefile: string | null;
  /** Servers for the Cache page. */
  readonly admin: readonly { readonly host: string; readonly port: number }[];
  readonly adminToken: string | null;
  readonly mayFlush: boolean;
  readonly checks: readonly { readonly host: string; readonly port: number }[];
  /** Dashboard URL with `{from}` and `{to}`. */
  readonly grafana: string | null;
  readonly opens: boolean;
}

/** The changes that the page is allowed to make. */
const actions = ['flush'] as const;
/** The default port of `ndots check serve`. */
const CHECK_PORT = 9154;

/** A Grafana dashboard URL. Unless it has placeholders for the times, Grafana's own parameters are appended. */
const dashboardUrl: OptionValue<string> = {
  placeholder: 'URL',
  read(given, name) {
    const url = URL.canParse(given) ? new URL(given) : null;
    if (url === null || !/^https?:$/.test(url.protocol))
      throw usage(`${name} takes an http or https URL, not "${given}"`);
    if (given.includes('{from}') || given.includes('{to}')) return given;
    return `${given}${given.includes('?') ? '&' : '?'}from={from}&to={to}`;
  },
};

const table = {
  ...group('Where from', {
    ...liveSourceOptions,
    dnstap: trafficOptions.dnstap,
    ...serverOptions,
    ...speedOption,
  }),
  ...group('Pod names', { ...ownerOptions, ...contextsOption }),
  ...group('Limits', {
    ...windowOptions,
  }),
  ...group('Page', {
    listen: one('--listen', listenAddress(0), 'listen here (127.0.0.1, a free port)'),
    hosts: many('--host', text('NAME'), 'host name in the page’s address'),
    tokenFile: one(
      '--token-file',
      file(),
      'read the access token from FILE (default: a new one at each start)',
    ),
    auth: authOption,
    privacy: one(
      '--privacy',
      choice('LEVEL', privacyLevels),
      'full, no-clients (hide client addresses and pod names), or counts',
    ),
    corefile: one('--corefile', file(), 'Corefile for the Configuration page'),
    checks: many(
      '--checks',
      hostAddress(CHECK_PORT),
      'an ndots check serve for the Checks page; repeatable',
    ),
    grafana: one(
      '--grafana',
      dashboardUrl,
      'link to this dashboard at the time of a finding; {from} and {to} are replaced with milliseconds',
    ),
    noOpen: flag('--no-open', 'only print the address, do not open a browser'),
  }),
  ...group('Cache page', {
    admin: many(
      '--admin',
      hostAddress(ADMIN_PORT),
      'a server with the admin directive; repeatable (with --replicas: the pods)',
    ),
    ...beside(['--admin', '--replicas'], {
      adminToken: one('--admin-token', file(), 'the token_file of admin'),
      allow: many('--allow', choice('ACTION', actions), 'flush: let the page flush cache entries'),
    }),
  }),
};

export const consoleUsage: Usage = {
  synopsis: '[-i INTERFACE | FILE…|-]',
  examples: [
    ['', 'watch this machine'],
    ['node7.pcap --speed max', 'show a capture at once'],
    ['--pid 4711 --cluster', 'watch one pod, and show names for the others'],
    ['--replicas --server-token FILE', 'watch all of the cluster’s DNS pods that have it'],
    ['--listen 127.0.0.1:8053 --no-open', 'for ssh -L or kubectl port-forward'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'The page cannot change anything without --allow. Its address contains an access token, without which the page shows nothing.',
    'Files: as for ndots capture; - is standard input.',
    'Exit codes: 0 ended by Ctrl-C, 2 could not be read, 3 usage error. More: docs/console.md',
  ],
  words: { files: true },
};

const LOOPBACK = '127.0.0.1';

/** @throws Problem (`usage`) */
export function parseConsoleOptions(given: readonly string[]): ConsoleOptions {
  const { values, words } = parseOptions(table, given);
  return {
    ...values,
    ...clustersOptionsOf(values, words),
    listen: values.listen ?? { host: LOOPBACK, port: 0 },
    isDelegated: isDelegated(values),
    privacy: values.privacy ?? 'full',
    mayFlush: values.allow.includes('flush'),
    opens: !values.noOpen,
  };
}
