/**
 * Node.js's dns.resolve4 and dns.resolve6 called together, which is c-ares with Node's settings. The search list, the
 * hosts file and nsswitch are never used, and any error reply is final. Each packet is sent up to four times, with
 * losses detected by a timer that ticks once a second.
 */
import {
  absolute,
  clientLine,
  failed,
  found,
  type ClientLine,
  type LookupOutcome,
  type Request,
  type Session,
  type Settings,
  type ModelContext,
} from './client.ts';
import { openChannel } from './c-ares.ts';
import { readCaresConf, type CaresConf } from './c-ares-conf.ts';
import { caresReleases, type CaresTraits } from './c-ares-releases.ts';
import { usableAddresses, type CaresChannel } from './c-ares-status.ts';
import { nodeName } from './idn.ts';
import { nodeReleases } from './node-releases.ts';
import { isSendable } from './search-list.ts';

/** Set by Node, which ignores resolv.conf here. */
const attempts = 4;
/** Milliseconds between time-out checks. */
const tickMs = 1000;

export const nodeResolve: ClientLine = clientLine(
  'node-resolve',
  nodeReleases,
  (version, { cares }) => ({
    summary: `dns.resolve4 and dns.resolve6 in Node.js ${version} (c-ares ${cares}): not used by http and net`,
    anyOrder: true,
    conf: (settings) => readConf(settings, caresReleases.traitsOf(cares)),
    open: (context) => new NodeResolveSession(context, caresReleases.traitsOf(cares)),
  }),
);

function readConf(settings: Settings, traits: CaresTraits): CaresConf {
  return { ...readCaresConf(settings, traits), attempts };
}

class NodeResolveSession implements Session {
  readonly #context: ModelContext;
  readonly #channel: CaresChannel;
  readonly #traits: CaresTraits;

  constructor(context: ModelContext, traits: CaresTraits) {
    this.#context = context;
    this.#traits = traits;
    const conf = readConf(context.settings, traits);
    const setup = { edns: false, caching: false, finalErrors: true, tickMs, useVc: true };
    this.#channel = openChannel(context, conf, traits, setup);
  }

  async lookup({ name: typed, families }: Request): Promise<LookupOutcome> {
    const name = nodeName(typed);
    if (name === null || !isSendable(name, this.#traits.longestName))
      return failed('EBADNAME', null, 'EBADNAME');
    const why = 'dns.resolve queries the name as written: no search list, no hosts file.';
    const results = await Promise.all(
      families.map(async (family) => {
        const query = this.#channel.query(absolute(name), family === 4 ? 'A' : 'AAAA', why);
        return query.done;
      }),
    );
    this.#channel.rest();
    const addresses = results.flatMap((result) =>
      result.status === 'SUCCESS' && result.reply !== null
        ? usableAddresses(result.reply, this.#traits)
        : [],
    );
    // A CNAME without a target is a success without addresses.
    if (results.some(({ status }) => status === 'SUCCESS')) return found(addresses);
    const status = results[0]?.status ?? 'ENODATA';
    this.#context.trace.step(`Both fail; this is the error of dns.resolve4: ${status}`);
    return failed(status, null, status);
  }
}
