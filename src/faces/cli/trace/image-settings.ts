/** The settings of a container whose image has no such files. */
import type { Settings } from '../../../tools/resolver/client.ts';

/** The hosts file of such a container. */
export const imageHosts = '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n';

/** The addresses of its interface. */
export const imageAddresses: readonly string[] = ['10.244.0.10', 'fe80::1'];

/** Its name. */
export const imageHostname = 'pod';

/** The same with a resolv.conf: what `ndots trace --resolv-conf FILE` plans with. */
export function imageSettings(resolvConf: string): Settings {
  return {
    resolvConf,
    nsswitch: null,
    hosts: imageHosts,
    hostAliases: null,
    env: {},
    host: { hostname: imageHostname, addresses: imageAddresses, loopback: [4, 6] },
  };
}
