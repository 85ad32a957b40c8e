import { whyFailed } from '../base/why-failed.ts';
import { errorCode } from '../base/error-code.ts';
import { printHostPort } from '../base/ip.ts';
import { Problem } from '../base/problem.ts';
import { interfaceAddresses } from '../runtime/interfaces.ts';
import { findPortHolder } from '../runtime/port-holder.ts';
import type { SocketKind } from '../wire/transports.ts';
import type { ListenAddress } from './listener.ts';

/** Explains why a `bind` failed. */
export async function bindProblem(
  cause: unknown,
  proto: SocketKind,
  { address, port }: Pick<ListenAddress, 'address' | 'port'>,
): Promise<Problem> {
  const code = errorCode(cause);
  const where = `listen ${proto} ${printHostPort(address, port)}`;
  switch (code) {
    case 'EADDRINUSE':
      return inUse(cause, where, proto, address, port);
    case 'EACCES':
    case 'EPERM':
      return new Problem({
        code: 'permission-denied',
        text: `${where}: permission denied`,
        hint: `Ports below 1024 need the NET_BIND_SERVICE capability, which this process does not have.`,
        remedy:
          `In Kubernetes: securityContext.capabilities.add: [NET_BIND_SERVICE]. On a machine: run as root, ` +
          `or "setcap cap_net_bind_service=+ep" on the node binary. To try something out: "-dns.port 1053".`,
        cause,
      });
    case 'EADDRNOTAVAIL':
      return new Problem({
        code: 'address-not-available',
        text: `${where}: address not available`,
        ...unavailable(address),
        cause,
      });
    case 'EAFNOSUPPORT':
      return new Problem({
        code: 'address-not-available',
        text: `${where}: address family not supported`,
        hint: `${address.includes(':') ? 'IPv6' : 'IPv4'} is disabled on this machine.`,
        remedy: `Bind only to addresses of the other family.`,
        cause,
      });
    default:
      return new Problem({
        code: 'listen-failed',
        text: `${where}: ${whyFailed(cause)}`,
        cause,
      });
  }
}

/**
 * The address is not assigned to this machine, or cannot be used yet (an IPv6 address still undergoing duplicate
 * address detection).
 */
function unavailable(address: string): { readonly hint: string; readonly remedy: string } {
  const owner = ownerOf(address);
  if (owner === null) {
    return {
      hint: `No interface of this machine (or network namespace) has the address ${address}.`,
      remedy: `Compare with "ip address"; an address on a dummy interface must exist before the server starts.`,
    };
  }
  return {
    hint: `The interface ${owner} has the address, but it can't be used yet: an IPv6 address is tentative until duplicate address detection ends, which needs a carrier.`,
    remedy: `See "ip address show ${owner}". Set the interface up, or add the address with "nodad".`,
  };
}

/** Returns the interface with this address, or null if there is none or it cannot be determined. */
function ownerOf(address: string): string | null {
  try {
    for (const [name, addresses] of interfaceAddresses()) {
      if (addresses.some((one) => one.replace(/%.*/s, '') === address.replace(/%.*/s, '')))
        return name;
    }
  } catch {
    // Without it, the hint is only less precise.
  }
  return null;
}

async function inUse(
  cause: unknown,
  where: string,
  proto: SocketKind,
  address: string,
  port: number,
): Promise<Problem> {
  const holder = await findPortHolder(proto, { address, port });
  return new Problem({
    code: 'address-in-use',
    text: `${where}: address already in use`,
    hint:
      holder !== null
        ? `"${holder.command}" (process ${holder.pid}) listens there.`
        : port === 53
          ? `Another DNS server listens there, for example systemd-resolved (127.0.0.53), dnsmasq, or a second copy of this one.`
          : `Another process listens there, perhaps a second copy of this one.`,
    remedy: `${holder === null ? `See who: "ss -lnp${proto === 'udp' ? 'u' : 't'} sport = :${port}". Then stop` : 'Stop'} it, or choose another port${address === '' ? ' or bind to one address' : ''}.`,
    cause,
  });
}

/** Returns true if the error means that this machine does not support the address family. */
export function isFamilyMissing(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL';
}
