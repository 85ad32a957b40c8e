import { isIP } from 'node:net';

/** Transports an upstream may be written with. */
export type UpstreamScheme = 'dns' | 'tls' | 'https';

/** An upstream as people write it. */
export interface UpstreamPlace {
  readonly scheme: UpstreamScheme;
  /** IP address, IPv6 without brackets, link-local with its zone. */
  readonly host: string;
  readonly port: number;
  /** After `%`, for tls and https; empty if not given. */
  readonly serverName: string;
}

const DEFAULT_PORT: Readonly<Record<UpstreamScheme, number>> = { dns: 53, tls: 853, https: 443 };

/**
 * Reads `IP`, `IP:port`, `[IPv6]:port`, `dns://…`, `tls://…%servername`, `https://…%servername`.
 * Returns null if it is none of these (a file name, a host name, a port out of range).
 */
export function parseUpstream(text: string): UpstreamPlace | null {
  const scheme = /^([a-z][a-z0-9+]*):\/\//i.exec(text);
  const name = scheme === null ? 'dns' : scheme[1]!.toLowerCase();
  if (name !== 'dns' && name !== 'tls' && name !== 'https') return null;
  let rest = scheme === null ? text : text.slice(scheme[0].length);
  let serverName = '';
  const percent = rest.lastIndexOf('%');
  // A server name has a dot or comes with an encrypted scheme; `fe80::1%eth0` carries an interface.
  if (percent >= 0 && name !== 'dns') {
    serverName = rest.slice(percent + 1);
    rest = rest.slice(0, percent);
    const colon = /^(.*):(\d+)$/.exec(serverName);
    if (colon !== null) {
      // `IP%name:port` is written as often as `IP:port%name`.
      serverName = colon[1]!;
      rest = isIP(rest) === 6 ? `[${rest}]:${colon[2]}` : `${rest}:${colon[2]}`;
    }
  }
  const place = parseHostPort(rest, DEFAULT_PORT[name]);
  return place === null ? null : { scheme: name, ...place, serverName };
}

/** `IP`, `IP:port`, `[IPv6]`, `[IPv6]:port`; null if it is none of these. */
export function parseHostPort(
  text: string,
  defaultPort: number,
): { readonly host: string; readonly port: number } | null {
  if (isIP(text) !== 0) return { host: text, port: defaultPort };
  const parts = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? /^([^:]+):(\d+)$/.exec(text);
  if (parts === null) return null;
  const [, host = '', digits] = parts;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (isIP(host) === 0 || port < 1 || port > 65535) return null;
  if (text.startsWith('[') && isIP(host) !== 6) return null;
  return { host, port };
}

/** `192.0.2.1:53`, `[2001:db8::1]:53`. */
export function printHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The way `parseUpstream` reads it back: the scheme only if it is not dns. */
export function printUpstream({ scheme, host, port, serverName }: UpstreamPlace): string {
  const prefix = scheme === 'dns' ? '' : `${scheme}://`;
  const suffix = serverName === '' ? '' : `%${serverName}`;
  return prefix + printHostPort(host, port) + suffix;
}
