/** The command line of `ndots trace`. */
import { parseAddress } from '../base/ip.ts';
import { Problem, nearest } from '../base/problem.ts';
import type { Family } from '../resolver/client.ts';

export interface TraceOptions {
  readonly name: string | null;
  readonly clients: readonly string[];
  readonly server: string | null;
  readonly resolvConf: string | null;
  readonly nsswitch: string | null;
  readonly hosts: string | null;
  readonly hostAliases: string | null;
  readonly families: readonly Family[];
  readonly hostAddresses: readonly string[] | null;
  readonly hostname: string | null;
  readonly addrConfig: boolean;
  readonly env: Readonly<Record<string, string>>;
  readonly answers: string | null;
  readonly corefile: string | null;
  readonly plan: boolean;
  readonly from: string | null;
  readonly manifests: string | null;
  readonly namespace: string | null;
  readonly kubelet: { readonly dns: readonly string[]; readonly domain: string };
  readonly ndots: number | null;
  readonly repeat: number;
  readonly timeoutMs: number;
  readonly output: string;
  readonly compare: boolean;
  readonly save: string | null;
  readonly replay: string | null;
  readonly port: number;
}

export const outputs = [
  'text',
  'wide',
  'json',
  'md',
  'html',
  'dot',
  'dig',
  'tcpdump',
  'strace',
] as const;

/** Options with a value, and those without. */
const valued = [
  '--client',
  '--resolv-conf',
  '--nsswitch',
  '--hosts',
  '--host-aliases',
  '--families',
  '--host-addresses',
  '--hostname',
  '--env',
  '--answers',
  '--corefile',
  '--from',
  '--manifests',
  '--namespace',
  '--cluster-dns',
  '--cluster-domain',
  '--ndots',
  '--repeat',
  '--timeout',
  '--output',
  '--save',
  '--replay',
  '--port',
] as const;
const switches = [
  '--plan',
  '--addrconfig',
  '--compare',
  '--cgo',
  '--strace',
  '--json',
  '--wide',
] as const;

export const valuedNames: readonly string[] = [...valued, '-n'];
export const optionNames: readonly string[] = [
  ...valued,
  ...switches,
  '-o',
  '-c',
  '-n',
  '-4',
  '-6',
];

const short: Readonly<Record<string, string>> = {
  '-o': '--output',
  '-c': '--client',
  '-n': '--namespace',
  '-4': '--families=4',
  '-6': '--families=6',
};

function usage(text: string, hint?: string): Problem {
  return new Problem({
    code: 'usage',
    text,
    hint,
    remedy: 'ndots trace --help shows the options.',
  });
}

export function parseTraceOptions(words: readonly string[]): TraceOptions {
  const values = new Map<string, string[]>();
  const flags = new Set<string>();
  const names: string[] = [];
  let server: string | null = null;
  for (let i = 0; i < words.length; i++) {
    let word = words[i] ?? '';
    if (short[word] !== undefined) word = short[word] ?? word;
    if (word.startsWith('@')) {
      const given = readServer(word.slice(1));
      server = given.host;
      if (given.port !== undefined) values.set('--port', [given.port]);
    } else if (word.startsWith('--')) {
      const [key = '', inline] = word.split(/=(.*)/s);
      if ((switches as readonly string[]).includes(key)) flags.add(key);
      else if ((valued as readonly string[]).includes(key)) {
        const value = inline ?? words[++i];
        if (value === undefined) throw usage(`${key} needs a value`);
        values.set(key, [...(values.get(key) ?? []), value]);
      } else {
        const meant = nearest(key, [...valued, ...switches]);
        throw usage(`unknown option ${key}`, meant === null ? undefined : `Did you mean ${meant}?`);
      }
    } else if (word.startsWith('-') && word.length > 1) throw usage(`unknown option ${word}`);
    else if (/^(A|AAAA)$/.test(word) && names.length === 1)
      values.set('--families', [word === 'A' ? '4' : '6']);
    else names.push(word);
  }
  if (names.length > 1)
    throw usage(`one name, please: "${names[0] ?? ''}" or "${names[1] ?? ''}"?`);
  const one = (key: string): string | null => values.get(key)?.at(-1) ?? null;
  const from = one('--from');
  const lonely = ['--manifests', '--namespace', '--cluster-dns', '--cluster-domain'].find(
    (key) => values.has(key) && (from === null || from === 'host'),
  );
  if (lonely !== undefined)
    throw usage(
      `${lonely} means nothing without a pod`,
      'As in: --from deploy/web --namespace shop',
    );
  const clients = (values.get('--client') ?? [])
    .flatMap((value) => value.split(','))
    .filter((value) => value !== '');
  const output = flags.has('--json')
    ? 'json'
    : flags.has('--wide')
      ? 'wide'
      : flags.has('--strace')
        ? 'strace'
        : (one('--output') ?? 'text');
  if (!(outputs as readonly string[]).includes(output)) {
    throw usage(`unknown output "${output}"`, `Known: ${outputs.join(', ')}`);
  }
  const env = Object.fromEntries(
    (values.get('--env') ?? []).map((pair) => {
      const equals = pair.indexOf('=');
      if (equals < 1) throw usage(`--env takes NAME=VALUE, not "${pair}"`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
  if (flags.has('--cgo')) env['CGO_ENABLED'] = '1';
  return {
    name: names[0] ?? null,
    clients: clients.length === 0 ? ['glibc'] : clients,
    server,
    resolvConf: one('--resolv-conf'),
    nsswitch: one('--nsswitch'),
    hosts: one('--hosts'),
    hostAliases: one('--host-aliases'),
    families: families(one('--families')),
    hostAddresses:
      one('--host-addresses') === null
        ? null
        : addresses('--host-addresses', one('--host-addresses')),
    hostname: one('--hostname'),
    addrConfig: flags.has('--addrconfig'),
    env,
    answers: one('--answers'),
    corefile: one('--corefile'),
    plan: flags.has('--plan'),
    from,
    manifests: one('--manifests'),
    namespace: one('--namespace'),
    kubelet: {
      dns: addresses('--cluster-dns', one('--cluster-dns') ?? '10.96.0.10'),
      domain: one('--cluster-domain') ?? 'cluster.local',
    },
    ndots: one('--ndots') === null ? null : integer('--ndots', one('--ndots'), 0, 1000),
    repeat: integer('--repeat', one('--repeat') ?? '1', 1, 1000),
    timeoutMs: 1000 * integer('--timeout', one('--timeout') ?? '0', 0, 86_400),
    output,
    compare: flags.has('--compare'),
    save: one('--save'),
    replay: one('--replay'),
    port: integer('--port', one('--port') ?? '53', 1, 65_535),
  };
}

/** `10.96.0.10`, `10.96.0.10:1053`, `[fd00::a]:53`. */
function readServer(text: string): { readonly host: string; readonly port: string | undefined } {
  const [, host = text, port] =
    /^\[([^\]]+)\](?:[:#](\d+))?$/.exec(text) ?? /^([^:#]+)[:#](\d+)$/.exec(text) ?? [];
  if (parseAddress(host.replace(/%.*$/, '')) === null)
    throw usage(
      `"@${text}" is no IP address`,
      'As in: @10.96.0.10, @10.96.0.10:1053, @[fd00::a]:53',
    );
  return { host, port };
}

function addresses(key: string, text: string | null): readonly string[] {
  const list = (text ?? '').split(',').filter((word) => word !== '');
  const wrong = list.find((word) => parseAddress(word) === null);
  if (wrong !== undefined || list.length === 0)
    throw usage(`${key} takes IP addresses, not "${wrong ?? ''}"`);
  return list;
}

function families(text: string | null): Family[] {
  const list = (text ?? '4,6').split(',').map((word) => word.trim());
  if (list.length === 0 || !list.every((word) => word === '4' || word === '6')) {
    throw usage(`--families takes 4, 6 or 4,6, not "${text ?? ''}"`);
  }
  const both = new Set(list);
  return ([4, 6] as const).filter((family) => both.has(family === 4 ? '4' : '6'));
}

function integer(key: string, text: string | null, least: number, most: number): number {
  if (text !== null && /^\d{1,6}$/.test(text) && Number(text) >= least && Number(text) <= most)
    return Number(text);
  throw usage(`${key} takes a whole number from ${least} to ${most}, not "${text ?? ''}"`);
}
