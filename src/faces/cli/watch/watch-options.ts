/** The command line of `ndots watch`. */
import { nearest } from '../../../server/base/problem.ts';
import { usualPorts } from '../../../tools/capture/read/reading.ts';
import { clusterGiven, clusterOptions, type ClusterOptions } from '../cluster-options.ts';
import { authOption, isDelegated } from '../delegated-access.ts';
import { liveSourceOptions, namespaceOf } from '../live-source-options.ts';
import { beside, flag, group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { file, listenAddress, text, usage } from '../option-values.ts';

export interface WatchOptions {
  readonly device: string;
  /** Path of a network namespace, or null for our own. */
  readonly netns: string | null;
  readonly ports: readonly number[];
  readonly allClients: boolean;
  readonly listen: { readonly host: string; readonly port: number };
  readonly tokenFile: string | null;
  /** The API server that authenticates readers, or null if they need the agent's token. */
  readonly decidedBy: ClusterOptions | null;
  /** Null: the name of the node or machine. */
  readonly identity: string | null;
}

/** The same port that the `console` directive uses, so that readers need not distinguish the two. */
const PORT = 9155;
const LOOPBACK = '127.0.0.1';

const table = {
  ...group('Packets', {
    ...liveSourceOptions,
    allClients: flag(
      '--all-clients',
      'also send packets from clients on other nodes, whose agents send them as well',
    ),
  }),
  ...group('Readers', {
    listen: one('--listen', listenAddress(PORT), `where readers connect (${LOOPBACK}:${PORT})`),
    tokenFile: one(
      '--token-file',
      file(),
      'file with the readers’ token, reread for each reader (default: a new token, written to the log)',
    ),
    auth: authOption,
    identity: one('--identity', text('NAME'), 'name of this agent (NODE_NAME, else the host name)'),
  }),
  ...group('API server', beside(['--auth'], { ...clusterOptions })),
};

export const watchUsage: Usage = {
  synopsis: 'serve',
  examples: [
    ['serve', 'offer this machine’s DNS packets on 127.0.0.1:9155'],
    ['serve --listen :9155 --token-file token', 'offer them to readers elsewhere'],
    ['serve --listen :9155 --auth kubernetes', 'offer them to readers with a permission'],
  ],
  style: 'gnu',
  options: table,
  words: { words: ['serve'] },
  notes: [
    'Runs the agent on a node. To read from it, use ndots top or console with --server IP:9155, or with --replicas --replica-selector app=ndots-watch for all nodes. More: docs/watch.md',
    'Packets are captured only while a reader is connected. The agent needs CAP_NET_RAW.',
    'Exit codes: 0 ended by a signal, 2 cannot capture or listen, 3 usage error.',
  ],
};

/** @throws Problem (`usage`) */
export function parseWatchOptions(words: readonly string[]): WatchOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [action = '', extra] = rest;
  if (action !== 'serve')
    throw usage(
      action === '' ? 'watch needs the word serve' : `there is no "watch ${action}"`,
      nearest(action, ['serve']) === null
        ? 'Example: ndots watch serve. To watch in a terminal: ndots top'
        : 'Did you mean serve?',
    );
  if (extra !== undefined) throw usage(`unexpected word "${extra}"`, 'Example: ndots watch serve');
  return {
    ...values,
    decidedBy: isDelegated(values) ? clusterGiven(values) : null,
    device: values.device ?? 'any',
    netns: namespaceOf(values),
    ports: values.ports ?? usualPorts,
    listen: values.listen ?? { host: LOOPBACK, port: PORT },
  };
}
