import { clipped } from '../base/shortened.ts';
import { basename } from 'node:path';

import { builtins } from '../base/builtins.ts';

/** A process that occupies a port. */
export interface PortHolder {
  readonly pid: number;
  /** Up to 60 characters of its command line, without the program's directory: `ndots serve --example`. */
  readonly command: string;
}

/** A local address and port to which sockets are bound. An empty address matches all. */
export interface BoundAddress {
  readonly address: string;
  readonly port: number;
}

/** Larger process tables are not searched. This runs once, before an error message, and must be fast. */
const MOST_PROCESSES = 4096;

/**
 * Finds the process that occupies a local address and port, using /proc. Returns null if there is none, if it belongs
 * to another user or PID namespace, or on systems other than Linux. A process that listens on the same port of a
 * different address does not count.
 */
export async function findPortHolder(
  proto: 'udp' | 'tcp',
  { address, port }: BoundAddress,
): Promise<PortHolder | null> {
  try {
    const sockets = new Set<string>();
    for (const table of [proto, `${proto}6`]) {
      for (const inode of await listening(table, address, port)) sockets.add(`socket:[${inode}]`);
    }
    if (sockets.size === 0) return null;
    const processes = (await builtins.filePromises().readdir('/proc')).filter((name) =>
      /^\d+$/.test(name),
    );
    for (const pid of processes.slice(0, MOST_PROCESSES)) {
      if (Number(pid) !== process.pid && (await holdsOne(pid, sockets)))
        return { pid: Number(pid), command: await commandOf(pid) };
    }
  } catch {
    // No /proc, or the process has ended, so it cannot be identified.
  }
  return null;
}

/**
 * Returns inodes of sockets in /proc/net/TABLE bound to the port on this address or on all (for tcp: in state LISTEN).
 */
async function listening(table: string, address: string, port: number): Promise<string[]> {
  let text: string;
  try {
    text = await builtins.filePromises().readFile(`/proc/self/net/${table}`, 'utf8');
  } catch {
    return [];
  }
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const four = kernelAddress(address);
  const inodes: string[] = [];
  for (const line of text.split('\n').slice(1)) {
    const words = line.trim().split(/\s+/);
    const [, local = '', , state = ''] = words;
    const inode = words[9];
    const [at = '', atPort] = local.split(':');
    if (inode === undefined || atPort !== wanted) continue;
    if (four !== null && at.length === four.length && at !== four && !/^0+$/.test(at)) continue;
    if (table.startsWith('udp') || state === '0A') inodes.push(inode);
  }
  return inodes;
}

/** Returns an IPv4 address as /proc/net spells it, with its bytes reversed: `0100007F`. Null matches any address. */
function kernelAddress(address: string): string | null {
  const bytes = address.split('.').map(Number);
  if (bytes.length !== 4 || address === '0.0.0.0') return null;
  return bytes
    .toReversed()
    .map((byte) => byte.toString(16).toUpperCase().padStart(2, '0'))
    .join('');
}

async function commandOf(pid: string): Promise<string> {
  const [program = '', ...words] = (
    await builtins.filePromises().readFile(`/proc/${pid}/cmdline`, 'utf8')
  )
    .split('\0')
    .filter((word) => word.trim() !== '');
  const line = [basename(program), ...words].join(' ').trim();
  // A process without a command line, such as one that is exiting, still has its short name.
  if (line === '')
    return (await builtins.filePromises().readFile(`/proc/${pid}/comm`, 'utf8')).trim();
  return clipped(line, 60);
}

async function holdsOne(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  let files: string[];
  try {
    files = await builtins.filePromises().readdir(`/proc/${pid}/fd`);
  } catch {
    return false;
  }
  for (const file of files) {
    try {
      if (sockets.has(await builtins.filePromises().readlink(`/proc/${pid}/fd/${file}`)))
        return true;
    } catch {
      continue;
    }
  }
  return false;
}
