/** Generates chain names for service ports and endpoints in kube-proxy's format. */
import { builtins } from '../../../server/base/builtins.ts';
import type { ServiceEndpoint } from './endpoints.ts';
import type { ProxiedPort } from './service-port.ts';

/** Base 32 (RFC 4648, section 6). */
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export interface PortChains {
  /** To all endpoints. */
  readonly cluster: string;
  /** To the endpoints on this node. */
  readonly local: string;
  /** From outside, to one of the two. */
  readonly external: string;
  /** The load balancer's source ranges. */
  readonly firewall: string;
}

/** `KUBE-SVC-…` and similar names, with sixteen letters of the SHA-256 hash of name and protocol. */
export function iptablesChains({ name, protocol }: ProxiedPort): PortChains {
  const hash = hashLetters(name + protocol, 16);
  return {
    cluster: `KUBE-SVC-${hash}`,
    local: `KUBE-SVL-${hash}`,
    external: `KUBE-EXT-${hash}`,
    firewall: `KUBE-FW-${hash}`,
  };
}

/** `KUBE-SEP-…`. */
export function iptablesEndpointChain(
  { name, protocol }: ProxiedPort,
  endpoint: ServiceEndpoint,
): string {
  return `KUBE-SEP-${hashLetters(name + protocol + endpoint.key, 16)}`;
}

/** `service-ULMVA6XW-ns/svc/tcp/http` and similar names. */
export function nftablesChains(port: ProxiedPort): PortChains {
  const base = nftablesBase(pathOf(port));
  return {
    cluster: `service-${base}`,
    local: `local-${base}`,
    external: `external-${base}`,
    firewall: `firewall-${base}`,
  };
}

/** An endpoint's chain, and the set of its sticky clients. */
export function nftablesEndpointNames(
  port: ProxiedPort,
  { ip, port: number }: ServiceEndpoint,
): { readonly chain: string; readonly affinity: string } {
  const base = nftablesBase(`${pathOf(port)}__${ip.replaceAll(':', '.')}/${number}`);
  return { chain: `endpoint-${base}`, affinity: `affinity-${base}` };
}

function pathOf({ namespace, service, protocol, portName }: ProxiedPort): string {
  return `${namespace}/${service}/${protocol}/${portName}`;
}

/** nft accepts 256 characters, of which the longest prefix may use 16. */
const BASE_MAX = 240;

function nftablesBase(path: string): string {
  const base = `${hashLetters(path, 8)}-${path}`;
  return base.length > BASE_MAX ? `${base.slice(0, BASE_MAX - 3)}...` : base;
}

/** Returns the first letters of a text's SHA-256 hash in base 32. */
function hashLetters(text: string, count: number): string {
  const bytes = builtins.crypto().hash('sha256', text, 'buffer');
  let found = '';
  let bits = 0;
  let held = 0;
  for (let at = 0; found.length < count;) {
    if (held < 5) {
      bits = ((bits & 0x1f) << 8) | bytes[at++]!;
      held += 8;
    }
    held -= 5;
    found += letters[(bits >> held) & 0x1f];
  }
  return found;
}
