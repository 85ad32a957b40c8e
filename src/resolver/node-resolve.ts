/**
 * dns.resolve4 and dns.resolve6 of Node.js at once: c-ares with settings of its own. Never the search list, the hosts
 * file or nsswitch; any error reply is final; lost packets are tried four times, with timers of whole seconds.
 */
import {
  absolute,
  failed,
  found,
  type Client,
  type Found,
  type Request,
  type Session,
  type Site,
} from './client.ts';
import { Channel } from './c-ares-channel.ts';
import { readCaresConf } from './c-ares-conf.ts';
import type { Ended } from './c-ares-status.ts';
import { addressesIn } from './reply.ts';
import { isSendable } from './search-list.ts';

export const nodeResolve: Client = {
  name: 'node-resolve',
  version: '',
  summary:
    'dns.resolve4 and dns.resolve6 of Node.js (c-ares inside Node): not what http and net use',
  anyOrder: true,
  open: (site) => new NodeResolveSession(site),
};

class NodeResolveSession implements Session {
  readonly #site: Site;
  readonly #channel: Channel;

  constructor(site: Site) {
    this.#site = site;
    const conf = readCaresConf(site.settings, '1.34');
    this.#channel = new Channel(
      site,
      { ...conf, timeoutMs: 2000, attempts: 4 },
      {
        edns: false,
        caching: false,
        finalErrors: true,
        tickMs: 1000,
        useVc: true,
        freshSockets: true,
      },
    );
  }

  async lookup({ name, families }: Request): Promise<Found> {
    if (!isSendable(name)) return failed('EBADNAME', null, 'EBADNAME');
    const why = 'dns.resolve asks the name as it is: no search list, no hosts file.';
    const results = await Promise.all(
      families.map(async (family) => {
        const query = this.#channel.query(
          absolute(name.toLowerCase()),
          family === 4 ? 'A' : 'AAAA',
          why,
        );
        return query.done;
      }),
    );
    this.#channel.rest();
    const addresses = results.flatMap((result) =>
      result.status === 'SUCCESS' && result.reply !== null ? addressesIn(result.reply) : [],
    );
    if (addresses.length > 0 || results.some(isEmptySuccess)) return found(addresses);
    const status = results[0]?.status ?? 'ENODATA';
    this.#site.trace.step(`Both fail; shown is what dns.resolve4 says: ${status}`);
    return failed(status, null, status);
  }
}

/** A CNAME that leads nowhere is no error to Node. */
function isEmptySuccess(ended: Ended): boolean {
  return ended.status === 'SUCCESS';
}
