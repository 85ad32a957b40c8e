/** Public resolvers whose certificates include their IP addresses. */
import { isIPv6 } from 'node:net';

/** Cloudflare, Google, Quad9, AdGuard, AliDNS and DNSPod, from their DNS over TLS documentation. */
const certified = new Set(
  [
    ['1.1.1.1', '1.0.0.1', '2606:4700:4700::1111', '2606:4700:4700::1001'],
    ['8.8.8.8', '8.8.4.4', '2001:4860:4860::8888', '2001:4860:4860::8844'],
    ['9.9.9.9', '149.112.112.112', '2620:fe::fe', '2620:fe::9'],
    ['94.140.14.14', '94.140.15.15'],
    ['223.5.5.5', '223.6.6.6', '2400:3200::1', '2400:3200:baba::1'],
    ['1.12.12.12', '120.53.53.53'],
  ]
    .flat()
    .map(plain),
);

export function isCertified(host: string): boolean {
  return certified.has(plain(host));
}

function plain(host: string): string {
  return isIPv6(host) ? new URL(`http://[${host.split('%')[0]!}]`).hostname : host;
}
