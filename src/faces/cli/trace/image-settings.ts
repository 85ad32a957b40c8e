/** Resolver settings for a container whose image does not include such files. */
import type { Settings } from '../../../tools/resolver/client.ts';

export const imageHosts = '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n';

/** The addresses of its interface. */
export const imageAddresses: readonly string[] = ['10.244.0.10', 'fe80::1'];

/** Host name of the container. */
export const imageHostname = 'pod';

/** The same settings with a different resolv.conf, as in `ndots trace --resolv-conf FILE`. */
export function imageSettings(resolvConf: string, hosts: string | null = imageHosts): Settings {
  return {
    resolvConf,
    nsswitch: null,
    hosts,
    hostAliases: null,
    env: {},
    host: { hostname: imageHostname, addresses: imageAddresses, loopback: [4, 6] },
  };
}
