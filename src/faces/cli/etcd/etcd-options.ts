/** The command line of `ndots etcd`. */
import type { EtcdAccess } from '../../../server/etcd/client.ts';
import { parseEndpoint, type EtcdEndpoint } from '../../../server/etcd/endpoint.ts';
import { normalPrefix } from '../../../server/plugins/etcd/path.ts';
import { flag, group, one, type OptionValue, type Usage } from '../option.ts';
import { firstGiven, parseOptions } from '../option-parse.ts';
import { choice, file, integer, readAction, text, usage } from '../option-values.ts';

export const actions = ['put', 'get', 'list', 'rm'] as const;
export type EtcdAction = (typeof actions)[number];

export interface EtcdVerbOptions {
  readonly action: EtcdAction;
  readonly names: readonly string[];
  readonly access: EtcdAccess;
  /** Prefix of all keys, such as `/skydns`. */
  readonly prefix: string;
  /** The given fields for the value of `put`. */
  readonly fields: Readonly<Record<string, string | number | boolean>>;
  /** Lease time in seconds, or null if there is no lease. */
  readonly leaseSeconds: number | null;
  readonly keepAlive: boolean;
  /** `rm`: also removes all subdomains. */
  readonly below: boolean;
  readonly output: 'text' | 'json';
}

const endpoints: OptionValue<readonly EtcdEndpoint[]> = {
  placeholder: 'URL,…',
  read: (given, name) =>
    given.split(',').map((word) => {
      const found = parseEndpoint(word);
      if (found === null)
        throw usage(`${name} takes endpoints such as http://127.0.0.1:2379, not "${word}"`);
      return found;
    }),
};

const table = {
  ...group('Record (put)', {
    port: one('--port', integer('PORT', 0, 65_535), 'port of the SRV record'),
    priority: one('--priority', integer('N', 0, 65_535), 'priority of SRV and MX (10)'),
    weight: one(
      '--weight',
      integer('N', 0, 65_535),
      'weight of the SRV record, relative to others of its priority',
    ),
    text: one('--text', text('TEXT'), 'text of the TXT record'),
    mail: flag('--mail', 'also answer MX'),
    ttl: one('--ttl', integer('SECONDS', 0, 2_147_483_647), 'time to live (300)'),
    targetstrip: one(
      '--targetstrip',
      integer('LABELS', 0, 127),
      'remove this many leading labels from targets derived from the name',
    ),
    group: one('--group', text('GROUP'), 'group of the record: answers contain one group only'),
    lease: one('--lease', integer('SECONDS', 1, 9_000_000), 'remove the record after this time'),
    keepAlive: flag(
      '--keep-alive',
      'keep the record (lease: 30 s, or --lease) until this command ends',
    ),
  }),
  ...group('Names (rm)', {
    below: flag('--below', 'include all names below'),
  }),
  ...group('etcd', {
    endpoints: one(
      '--endpoints',
      endpoints,
      'etcd members (ETCDCTL_ENDPOINTS, or http://127.0.0.1:2379)',
    ),
    path: one('--path', text('PATH'), 'prefix of all keys (/skydns)'),
    user: one('--user', text('USER[:PASSWORD]'), 'user name (ETCDCTL_USER)'),
    password: one('--password', text('PASSWORD'), 'password (ETCDCTL_PASSWORD)'),
    cacert: one('--cacert', file(), 'CA of the server certificate (ETCDCTL_CACERT)'),
    cert: one('--cert', file(), 'client certificate (ETCDCTL_CERT)'),
    key: one('--key', file(), 'client key (ETCDCTL_KEY)'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

/** Options for `put`. */
const ofPut = [
  'port',
  'priority',
  'weight',
  'text',
  'mail',
  'ttl',
  'targetstrip',
  'group',
  'lease',
  'keepAlive',
] as const;

export const etcdUsage: Usage = {
  synopsis: 'put NAME [HOST] | get NAME… | list [NAME…] | rm NAME…',
  examples: [
    ['put a1.web.shop.cluster.local 10.3.0.116 --port 80 --ttl 30', 'register a service'],
    [
      'put a1.web.shop.cluster.local 10.3.0.116 --keep-alive',
      'register it while this command runs',
    ],
    ['list cluster.local', 'list all records of a zone'],
    ['rm a1.web.shop.cluster.local', 'remove it'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Records use the SkyDNS format, which the etcd plugin in ndots and CoreDNS reads. The key is the name from right to left, under /skydns. A name selects all records under it, so give each of a service’s records its own first label: a1.web.shop.cluster.local, a2.web.shop.cluster.local.',
    'HOST is an address (A, AAAA) or a name (CNAME). If NAME is an address, its reverse name is used: put 10.3.0.116 web.shop.cluster.local writes a PTR record.',
    'Exit codes: 0 done, 1 no such record, 2 etcd does not answer or refuses the request, 3 usage error.',
  ],
  words: { words: actions },
};

/** @param env provides etcdctl's variables */
export function parseEtcdOptions(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): EtcdVerbOptions {
  const { values, words: rest } = parseOptions(table, words);
  const [given = '', ...names] = rest;
  const action = readAction(given, actions);
  if (names.length === 0 && action !== 'list') throw usage(`${action} needs a name`);
  if (action === 'put' && names.length > 2)
    throw usage(`put accepts one name and one host, but not "${names[2]}"`);
  if (action === 'put' && names.length === 1 && values.text === null)
    throw usage(
      'put needs a host after the name, or --text',
      'Example: put a1.web.shop.local 10.3.0.116',
    );
  const other =
    (action === 'put' ? null : firstGiven(table, values, ofPut)) ??
    (action === 'rm' ? null : firstGiven(table, values, ['below']));
  if (other !== null) throw usage(`${action} does not take ${other}`);
  const [, host] = action === 'put' ? names : [];
  return {
    action,
    names: action === 'put' ? names.slice(0, 1) : names,
    access: access(values, env),
    prefix: normalPrefix(values.path ?? '/skydns'),
    fields: fieldsOf(host, values),
    leaseSeconds: values.lease ?? (values.keepAlive ? 30 : null),
    keepAlive: values.keepAlive,
    below: values.below,
    output: values.output ?? 'text',
  };
}

type Values = ReturnType<typeof parseOptions<typeof table>>['values'];

function fieldsOf(host: string | undefined, values: Values): EtcdVerbOptions['fields'] {
  const { port, priority, weight, text: words, mail, ttl, targetstrip, group: of } = values;
  const all: Record<string, string | number | boolean | null> = {
    host: host ?? null,
    port,
    priority,
    weight,
    text: words,
    mail: mail ? true : null,
    ttl,
    targetstrip,
    group: of,
  };
  const given: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(all)) if (value !== null) given[name] = value;
  return given;
}

function access(values: Values, env: Readonly<Record<string, string | undefined>>): EtcdAccess {
  const certificate = values.cert ?? env['ETCDCTL_CERT'] ?? '';
  const key = values.key ?? env['ETCDCTL_KEY'] ?? '';
  const authority = values.cacert ?? env['ETCDCTL_CACERT'] ?? '';
  if ((certificate === '') !== (key === '')) throw usage('--cert and --key must be given together');
  const listed = env['ETCDCTL_ENDPOINTS'];
  return {
    endpoints:
      values.endpoints ??
      endpoints.read(
        listed === undefined || listed === '' ? 'http://127.0.0.1:2379' : listed,
        'ETCDCTL_ENDPOINTS',
      ),
    tls: certificate === '' && authority === '' ? null : { certificate, key, authority },
    credentials: credentials(values, env),
  };
}

function credentials(
  values: Values,
  env: Readonly<Record<string, string | undefined>>,
): EtcdAccess['credentials'] {
  const given = values.user ?? env['ETCDCTL_USER'] ?? '';
  if (given === '' && values.password !== null) throw usage('--password needs --user');
  if (given === '') return null;
  const colon = given.indexOf(':');
  const inline = colon < 0 ? undefined : given.slice(colon + 1);
  const password = values.password ?? inline ?? env['ETCDCTL_PASSWORD'];
  if (password === undefined)
    throw usage('--user needs a password', 'Example: --user dns:secret, or ETCDCTL_PASSWORD.');
  return { user: colon < 0 ? given : given.slice(0, colon), password };
}
