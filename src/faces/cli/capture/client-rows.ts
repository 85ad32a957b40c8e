/** Formats clients and their resolvers as table rows and as JSON. */
import type {
  ListedClient,
  ListedClients,
  OtherClients,
} from '../../../tools/doctor/observe/client-list.ts';
import type { Kind } from '../../../tools/capture/fingerprint/asking-classes.ts';
import type { NamedResolver } from '../../../tools/capture/fingerprint/named-resolver.ts';
import type { AddressNaming, NamedAddress } from './capture-names.ts';
import { count } from '../../../server/base/counted.ts';
import { wrap, type Page } from '../page.ts';

const head = ['CLIENT', 'QUERIES', 'LOOKUPS', 'RESOLVER'] as const;
/** On narrower terminals, resolvers get a separate line. */
const RESOLVER_COLUMNS = 28;

/** One line per client, or two on narrow terminals, and one for the clients that are not listed. */
export function clientRows(
  { listed, others }: ListedClients,
  naming: AddressNaming,
  page: Pick<Page, 'columns' | 'paint'>,
): readonly string[] {
  if (listed.length === 0 && others === null) return [];
  const rows = listed.map((client) => ({ ...client, shown: shownAs(naming(client.address)) }));
  const name = Math.max(head[0].length, ...rows.map(({ shown }) => shown.length));
  const cells = (client: string, queries: string, lookups: string): string =>
    `${client.padEnd(name)}  ${queries.padStart(head[1].length)}  ${lookups.padStart(head[2].length)}  `;
  const indent = cells('', '', '').length;
  const beside = page.columns - indent >= RESOLVER_COLUMNS;
  const lines: string[] = beside
    ? [page.paint.strong(`${cells(head[0], head[1], head[2])}${head[3]}`)]
    : [];
  for (const { shown, queries, lookups, resolver } of rows) {
    const text = resolverText(resolver);
    if (beside) {
      const left = cells(shown, String(queries), String(lookups));
      const [first = '', ...more] = wrap(text, ' '.repeat(left.length), page);
      lines.push(left + first.slice(left.length), ...more);
    } else {
      const counts = `${count(queries, 'query', 'queries')}, ${count(lookups, 'lookup', 'lookups')}`;
      lines.push(...wrap(shown, '', page), ...wrap(`${counts}; ${text}`, '    ', page));
    }
  }
  if (others !== null) lines.push(...wrap(othersText(others), '', page));
  return lines;
}

/** `shop/cart-7d4b9c (deploy/cart)`, or only the address. */
function shownAs({ address, name, workload }: NamedAddress): string {
  if (name === '') return address === '' ? '-' : address;
  return workload === '' ? name : `${name} (${workload})`;
}

const words: Readonly<Partial<Record<Kind, string>>> = {
  tool: 'a tool (dig, host, nslookup)',
  forwarder: 'a forwarder (dnsmasq, Unbound, CoreDNS)',
};

/** `glibc 98 %`, `glibc or c-ares 84 %` or `not told apart: too few lookups`. */
export function resolverText({ kinds, confidence, why }: NamedResolver): string {
  if (confidence === null) return kinds.length > 0 ? why : `not told apart: ${why}`;
  return `${kinds.map((kind) => words[kind] ?? kind).join(' or ')} ${percent(confidence)} %`;
}

/** Never 100, because the resolver is only inferred. */
function percent(share: number): number {
  return Math.min(99, Math.round(100 * share));
}

function othersText({ clients, queries, more }: OtherClients): string {
  const asked = `with ${count(queries, 'query', 'queries')}`;
  if (!more) return `and ${count(clients, 'more client', 'more clients')} ${asked}`;
  return `and more than ${count(clients, 'other client', 'other clients')} ${asked}`;
}

export interface ClientDocument
  extends
    Partial<Omit<NamedAddress, 'address'>>,
    Pick<ListedClient, 'queries' | 'lost' | 'lookups'> {
  readonly kind: 'Client';
  readonly address: string;
  readonly resolver: {
    readonly kinds: readonly Kind[];
    readonly confidence: number | null;
    readonly lookups: number;
    readonly why?: string;
  };
}

/** Represents the clients that are not listed, as JSON. */
export interface OtherClientsDocument extends OtherClients {
  readonly kind: 'OtherClients';
}

/** One document per client, and one for the rest if there are any. */
export function clientDocuments(
  { listed, others }: ListedClients,
  naming: AddressNaming,
): readonly (ClientDocument | OtherClientsDocument)[] {
  const documents = listed.map((client) => clientDocument(client, naming));
  return others === null ? documents : [...documents, { kind: 'OtherClients', ...others }];
}

function clientDocument(client: ListedClient, naming: AddressNaming): ClientDocument {
  const { queries, lost, lookups, resolver } = client;
  const { address, name, workload, node } = naming(client.address);
  const { kinds, confidence, why } = resolver;
  return {
    kind: 'Client',
    address,
    // Omits unknown fields.
    ...(name !== '' && { name }),
    ...(workload !== '' && { workload }),
    ...(node !== '' && { node }),
    queries,
    lost,
    lookups,
    resolver: {
      kinds,
      // Never 1, because the resolver is only inferred.
      confidence: confidence === null ? null : Math.floor(confidence * 1000) / 1000,
      lookups: resolver.lookups,
      ...(why !== '' && { why }),
    },
  };
}
