/** The zone's name servers, which are services that lead to this server. */
import { bytesKey, copyOf } from '../../../base/copy-bytes.ts';
import { distinct } from '../../../base/distinct.ts';
import { TYPE } from '../../../wire/iana.ts';
import type { WireName } from '../../../wire/name.ts';
import { SECTION } from '../../../wire/writer.ts';
import type { Cluster, SliceRecord } from './cluster.ts';
import { EndpointReader } from '../contract/endpoint-encoding.ts';
import type { ReplyBuilder } from './reply-builder.ts';
import { eachAddress, endpointLabels, serviceLabels } from './targets.ts';

interface NameServer {
  readonly labels: readonly string[];
  readonly address: Uint8Array;
}

const reader = new EndpointReader();
const fallback = ['ns', 'dns'];

/**
 * Returns a zone's name servers. These are the services that have an endpoint at one of this server's addresses, with
 * their names and addresses (one per endpoint if headless). If there are none, it is `ns.dns.ZONE` with the server's
 * own addresses.
 */
export function nameServers(cluster: Cluster, own: readonly Uint8Array[]): readonly NameServer[] {
  const found = new Map<string, NameServer>();
  let known = false;
  const add = (labels: readonly string[], address: Uint8Array): void =>
    void found.set(`${labels.join('.')} ${address.join('.')}`, { labels, address });
  for (const address of own) {
    for (const service of cluster.servicesBehind(address, 0, address.length)) {
      known = true;
      for (const slice of service.slices) {
        if (!hasAddress(slice, address)) continue;
        if (service.form === 'cluster')
          eachAddress(service, (bytes, at, length) =>
            add(serviceLabels(service), copyOf(bytes, at, at + length)),
          );
        if (service.form !== 'headless') continue;
        for (reader.over(slice.endpoints); reader.next();)
          if (!reader.named) add(endpointLabels(service, slice, reader.host), reader.address);
      }
    }
  }
  return known ? [...found.values()] : own.map((address) => ({ labels: fallback, address }));
}

function hasAddress({ endpoints }: SliceRecord, address: Uint8Array): boolean {
  for (reader.over(endpoints); reader.next();) if (reader.isAt(address)) return true;
  return false;
}

export function writeNameServers(builder: ReplyBuilder, servers: readonly NameServer[]): void {
  const named = servers.flatMap(({ labels, address }) => {
    const target = builder.nameBelow(labels);
    return target === null ? [] : { target, address };
  });
  for (const { target } of distinct(named, (one) => bytesKey(one.target)))
    builder.alias(TYPE.NS, target);
  for (const { target, address } of named)
    builder.address(SECTION.additional, target, address, 0, address.length);
}

/** Answers A or AAAA for `ns.dns` with the addresses of all name servers. */
export function writeServerAddresses(
  builder: ReplyBuilder,
  servers: readonly NameServer[],
  type: number,
  owner: WireName | null = null,
): void {
  const length = type === TYPE.A ? 4 : 16;
  const fitting = servers.filter(({ address }) => address.length === length);
  for (const { address } of distinct(fitting, (one) => bytesKey(one.address)))
    builder.address(SECTION.answer, owner, address, 0, length);
}
