/** Selects exchanges using the filters of Hubble's command line: from-pod, to-ip, verdict, not … */
import { netHolds, parseAddress, parseNet, type Net } from '../../server/base/ip.ts';
import { nearest, Problem } from '../../server/base/problem.ts';
import { RCODE, rcodeNumber, TYPE, typeNumber } from '../../server/wire/iana.ts';
import type { AddressOwners } from '../pods/address-owners.ts';
import { shortKind } from '../pods/resource-name.ts';
import { isLost, latencyOf, type SeenExchange } from './pair/seen-exchange.ts';

export const filterWords = [
  'pod',
  'from-pod',
  'to-pod',
  'namespace',
  'workload',
  'service',
  'ip',
  'from-ip',
  'to-ip',
  'server-ip',
  'name',
  'type',
  'rcode',
  'verdict',
  'protocol',
  'slower-than',
  'command',
  'container',
] as const;
export type FilterWord = (typeof filterWords)[number];

/** Filters that depend on the reply, so they cannot select packets as they pass. */
export const afterwards: ReadonlySet<FilterWord> = new Set([
  'rcode',
  'verdict',
  'slower-than',
  'command',
  'container',
]);

/** Filters that match nothing unless processes are looked up. */
export const ofProcesses: ReadonlySet<FilterWord> = new Set(['command', 'container']);

export const ofClients: ReadonlySet<FilterWord> = new Set([
  'from-pod',
  'namespace',
  'workload',
  'from-ip',
]);

/** Filters that match nothing unless address owners are known. */
export const ofOwners: ReadonlySet<FilterWord> = new Set([
  'pod',
  'from-pod',
  'to-pod',
  'namespace',
  'workload',
  'service',
]);

/**
 * A filter as the user wrote it. Values for the same word are alternatives, different words must all match, and negated
 * words must not match.
 */
export interface GivenFilter {
  readonly word: FilterWord;
  readonly value: string;
  readonly negated: boolean;
}

/** The exchange fields that filters read, which both captured and stored exchanges have. */
export type FilteredExchange = Pick<
  SeenExchange,
  | 'client'
  | 'server'
  | 'hops'
  | 'name'
  | 'type'
  | 'rcode'
  | 'ending'
  | 'protocol'
  | 'sentMs'
  | 'repliedMs'
  | 'asker'
>;

export type Filter = (exchange: FilteredExchange) => boolean;

/**
 * @param owners maps addresses to pods and services
 * @param dashes precedes words in errors: empty if the user typed `word=value`
 * @throws Problem with code `usage`
 */
export function filterOf(
  given: readonly GivenFilter[],
  owners: AddressOwners,
  dashes: '--' | '' = '--',
): Filter {
  const wanted = new Map<FilterWord, Filter[]>();
  const unwanted: Filter[] = [];
  for (const { word, value, negated } of given) {
    const test = testOf(word, value, owners, `${dashes}${word}`);
    if (negated) unwanted.push(test);
    else wanted.set(word, [...(wanted.get(word) ?? []), test]);
  }
  // This runs for every exchange in a capture, and usually there is no filter.
  if (given.length === 0) return () => true;
  const groups = [...wanted.values()];
  return (exchange) =>
    groups.every((tests) => tests.some((test) => test(exchange))) &&
    !unwanted.some((test) => test(exchange));
}

/** @param label the word in errors */
function testOf(word: FilterWord, value: string, owners: AddressOwners, label: string): Filter {
  switch (word) {
    case 'from-pod':
      return ({ client }) => isPod(owners, client.address, value);
    case 'to-pod':
      return ({ server }) => isPod(owners, server.address, value);
    case 'pod':
      return ({ client, server }) =>
        isPod(owners, client.address, value) || isPod(owners, server.address, value);
    case 'namespace':
      return ({ client }) => owners.get(client.address)?.namespace === value;
    case 'workload': {
      const [name = '', kind, namespace, ...more] = value.split('/').toReversed();
      if (name === '' || kind === undefined || more.length > 0)
        throw wrong(label, value, 'a kind and a name such as deploy/cart or shop/deploy/cart');
      const workload = `${shortKind(kind)}/${name}`;
      return ({ client }) => {
        const owner = owners.get(client.address);
        return (
          owner?.workload === workload && (namespace === undefined || owner.namespace === namespace)
        );
      };
    }
    case 'service':
      return ({ server }) => {
        const owner = owners.get(server.address);
        return (
          owner?.kind === 'service' &&
          (owner.name === value || `${owner.namespace}/${owner.name}` === value)
        );
      };
    case 'from-ip':
      return byNet(value, label, (exchange) => [exchange.client.address]);
    case 'to-ip':
      return byNet(value, label, serverAddresses);
    case 'server-ip':
      return byNet(value, label, ({ server }) => [server.address]);
    case 'ip':
      return byNet(value, label, (exchange) => [
        exchange.client.address,
        ...serverAddresses(exchange),
      ]);
    case 'name':
      return byName(value.toLowerCase());
    case 'type': {
      const type = typeNumber(value.toUpperCase());
      if (type === null)
        throw wrong(label, value, 'a type such as A, AAAA or SRV', Object.keys(TYPE));
      return (exchange) => exchange.type === type;
    }
    case 'rcode': {
      const rcode = rcodeNumber(value.toUpperCase());
      if (rcode === null)
        throw wrong(label, value, 'a result code such as NXDOMAIN', Object.keys(RCODE));
      return (exchange) => exchange.rcode === rcode;
    }
    case 'verdict':
      return byVerdict(value, label);
    case 'protocol':
      if (value !== 'udp' && value !== 'tcp')
        throw wrong(label, value, 'udp or tcp', ['udp', 'tcp']);
      return (exchange) => exchange.protocol === value;
    case 'command': {
      const isWanted = value.endsWith('*')
        ? (name: string) => name.startsWith(value.slice(0, -1))
        : (name: string) => name === value;
      return ({ asker }) => asker?.processes.some(({ command }) => isWanted(command)) ?? false;
    }
    case 'container':
      return ({ asker }) => asker?.container?.id.startsWith(value.toLowerCase()) ?? false;
    case 'slower-than': {
      const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s)?$/.exec(value) ?? [];
      if (number === undefined) throw wrong(label, value, 'a time such as 100ms or 1s');
      const least = Number(number) * (unit === 's' ? 1000 : 1);
      return (exchange) => (latencyOf(exchange) ?? (isLost(exchange) ? Infinity : 0)) > least;
    }
  }
}

/**
 * Matches `NAMESPACE/NAME` or `NAME`. As in Hubble, a prefix of the pod name is enough, and `NAMESPACE/` selects the
 * whole namespace.
 */
function isPod(owners: AddressOwners, address: string, value: string): boolean {
  const owner = owners.get(address);
  if (owner?.kind !== 'pod') return false;
  const slash = value.indexOf('/');
  if (slash < 0) return owner.name.startsWith(value);
  return owner.namespace === value.slice(0, slash) && owner.name.startsWith(value.slice(slash + 1));
}

function serverAddresses({ server, hops }: FilteredExchange): readonly string[] {
  return [server.address, ...hops.map((hop) => hop.server.address)];
}

function byNet(
  value: string,
  label: string,
  addresses: (exchange: FilteredExchange) => readonly string[],
): Filter {
  const net: Net | null = parseNet(value);
  if (net === null) throw wrong(label, value, 'an address or a prefix such as 10.244.0.0/16');
  const known = new Map<string, boolean>();
  return (exchange) =>
    addresses(exchange).some((address) => {
      let holds = known.get(address);
      if (holds === undefined) {
        const bytes = parseAddress(address);
        holds = bytes !== null && netHolds(net, bytes);
        if (known.size < 100_000) known.set(address, holds);
      }
      return holds;
    });
}

/** Matches a name, or part of it if there is a `*` at either end. The trailing dot is optional. */
function byName(value: string): Filter {
  const before = value.startsWith('*');
  const after = value.endsWith('*') && value.length > 1;
  const text = value.slice(before ? 1 : 0, after ? -1 : undefined);
  if (after) return ({ name }) => (before ? name.includes(text) : name.startsWith(text));
  const whole = text.endsWith('.') ? text : `${text}.`;
  return ({ name }) => (before ? name.endsWith(whole) : name === whole);
}

function byVerdict(value: string, label: string): Filter {
  const verdicts: Readonly<Record<string, Filter>> = {
    answered: ({ ending }) => ending === 'answered',
    forwarded: ({ ending }) => ending === 'answered',
    lost: isLost,
    dropped: isLost,
    error: ({ ending, rcode }) => ending === 'answered' && rcode !== 0 && rcode !== 3,
  };
  const test = Object.hasOwn(verdicts, value) ? verdicts[value] : undefined;
  if (test !== undefined) return test;
  throw wrong(label, value, 'answered, lost or error', Object.keys(verdicts));
}

/** @param known the words that the filter accepts, if they are a closed list */
function wrong(
  label: string,
  value: string,
  takes: string,
  known: readonly string[] = [],
): Problem {
  const meant = nearest(value, known);
  return new Problem({
    code: 'usage',
    text: `${label} takes ${takes}, not "${value}"${meant === null ? '' : `; did you mean ${meant}?`}`,
  });
}
