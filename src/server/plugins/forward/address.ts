import { isIP, printHostPort } from '../../base/ip.ts';
import { upstreamSchemes, type UpstreamScheme } from '../../transport/upstream-address.ts';
import { transports } from '../../wire/transports.ts';

/** An upstream with a known address. Plain data, because the control plane sends it to the workers. */
export interface ForwardUpstreamSpec {
  readonly scheme: UpstreamScheme;
  /** IP address. IPv6 may have a zone (`fe80::1%eth0`). */
  readonly host: string;
  readonly port: number;
  /**
   * The name expected in the certificate (`tls://IP%NAME`, or a host name). If it is empty, `tls_servername` applies.
   */
  readonly serverName: string;
}

/** A word after FROM, which is an address, or a name to resolve when the configuration is loaded. */
export type ForwardDestination =
  | { readonly kind: 'address'; readonly upstream: ForwardUpstreamSpec }
  | {
      /** A file with `nameserver` lines if there is one by this name, otherwise a host name. */
      readonly kind: 'place';
      readonly text: string;
      readonly scheme: UpstreamScheme;
      readonly port: number;
      /** The name expected in the certificate (`tls://HOST%NAME`); if empty, the host name itself. */
      readonly serverName: string;
    }
  | { readonly kind: 'wrong'; readonly text: string; readonly hint: string | null };

/**
 * Parses one TO: `IP`, `IP:PORT`, `[v6]:PORT`, `https://HOST`, a file or a host name. With TLS, it may include the
 * server name, as in `tls://IP%NAME`. The port can then follow either part: `IP%NAME:PORT`, `[v6%NAME]:PORT`,
 * `IP:PORT%NAME`.
 */
export function readTo(text: string): ForwardDestination {
  const parts = /^([a-z0-9]+):\/\/(.*)$/.exec(text);
  const scheme =
    parts === null ? 'dns' : upstreamSchemes.find((candidate) => candidate === parts[1]);
  if (scheme === undefined) {
    const known = upstreamSchemes.map((candidate) => `${candidate}://`);
    return {
      kind: 'wrong',
      text: `unsupported transport in '${text}'`,
      hint: `Upstreams are reached over ${known.slice(0, -1).join(', ')} or ${known.at(-1)}.`,
    };
  }
  let rest = parts === null ? text : parts[2]!;
  if (scheme === 'https' && rest.includes('/')) {
    return {
      kind: 'wrong',
      text: `path is not allowed in '${text}'`,
      hint: 'The path is always /dns-query.',
    };
  }
  let serverName = '';
  const percent = rest.lastIndexOf('%');
  if (scheme !== 'dns' && percent >= 0) {
    const named = /^([^\]:]+)(\]?)((?::.*)?)$/.exec(rest.slice(percent + 1));
    if (named === null)
      return { kind: 'wrong', text: `invalid server name in '${text}'`, hint: null };
    const [, name = '', bracket = '', port = ''] = named;
    rest = rest.slice(0, percent) + bracket;
    // In `2001:db8::1%NAME:PORT`, the name separates the port from the address.
    if (port !== '' && isIP(rest) === 6) rest = `[${rest}]`;
    rest += port;
    serverName = name;
  }
  const { host, port } = splitPort(rest);
  if (port === null) {
    const hint = 'Ports go from 1 to 65535.';
    return { kind: 'wrong', text: `invalid port in '${text}'`, hint };
  }
  const known = port === 0 ? transports[scheme].port : port;
  if (isIP(host) !== 0)
    return { kind: 'address', upstream: { scheme, host, port: known, serverName } };
  if (host === '')
    return {
      kind: 'wrong',
      text: `not an IP address or file: ${JSON.stringify(text)}`,
      hint: null,
    };
  if (isMeantAsAddress(host))
    return {
      kind: 'wrong',
      text: `not an IP address or file: ${JSON.stringify(host)}`,
      hint: 'An IPv4 address consists of four numbers from 0 to 255, or with a port, 10.0.0.1:53. Separate several addresses with blanks.',
    };
  return { kind: 'place', text: host, scheme, port: known, serverName };
}

/** True if a word cannot be an address, a file or a host name. */
function isMeantAsAddress(word: string): boolean {
  return !word.includes('/') && (!/[a-z_]/i.test(word) || /[:;,]/.test(word));
}

/** Splits a text into host and port. The port is 0 if absent and null if malformed. */
function splitPort(text: string): { readonly host: string; readonly port: number | null } {
  if (isIP(text) !== 0) return { host: text, port: 0 };
  const match = /^(?:\[([^\]]*)\]|([^:[\]]*)):([^:]*)$/.exec(text);
  if (match === null) return { host: text.replace(/^\[(.*)\]$/, '$1'), port: 0 };
  const port = /^\d{1,5}$/.test(match[3]!) ? Number(match[3]) : 0;
  return { host: match[1] ?? match[2] ?? '', port: port >= 1 && port <= 65535 ? port : null };
}

/** Formats `10.0.0.1:53` or `[2001:db8::1]:53`, the metrics' `to` label. */
export function printUpstream({ host, port }: ForwardUpstreamSpec): string {
  return printHostPort(host, port);
}

/** Formats `tls://10.0.0.1:853` from the scheme, the address or host name, and the port. */
export function printTo(to: Exclude<ForwardDestination, { kind: 'wrong' }>): string {
  const { scheme, host, port } = to.kind === 'address' ? to.upstream : { ...to, host: to.text };
  return `${scheme}://${printUpstream({ scheme, host, port, serverName: '' })}`;
}
