/** Lookups for checks, using resolver models on this machine's sockets. */
import { systemClock } from '../../../server/base/clock.ts';
import { secureRandom } from '../../../server/base/random.ts';
import type { ProbeNetwork } from '../../../tools/probe/network.ts';
import { runLookup } from '../../../tools/resolver/run-lookup.ts';
import { LiveNetwork } from '../live-network.ts';

/** Time limit for a lookup in milliseconds, which is how long glibc waits with one server and three suffixes. */
const LIMIT_MS = 45_000;

/** @param timeoutMs per try, because resolv.conf only supports whole seconds */
export function liveLookup(timeoutMs: number): ProbeNetwork['lookup'] {
  const seconds = Math.min(30, Math.max(1, Math.ceil(timeoutMs / 1000)));
  return async (client, name, { host, port }, { search, ndots }) => {
    const resolvConf = `nameserver ${host}\nsearch ${search.join(' ')}\noptions ndots:${ndots} timeout:${seconds}\n`;
    // The clock's timers do not keep the process alive, so this timer does so until the lookup ends.
    const hold = setTimeout(() => {}, LIMIT_MS + 1000);
    try {
      return await runLookup(
        {
          client,
          name,
          families: [4, 6],
          addrConfig: false,
          repeat: 1,
          limitMs: LIMIT_MS,
          settings: {
            resolvConf,
            nsswitch: 'hosts: dns\n',
            hosts: '',
            hostAliases: null,
            env: {},
            host: { hostname: 'check', addresses: [], loopback: [4, 6] },
          },
        },
        (made) => new LiveNetwork(made, port),
        systemClock,
        secureRandom,
        true,
      );
    } finally {
      clearTimeout(hold);
    }
  };
}
