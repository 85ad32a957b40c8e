import { readFile, readdir, readlink } from 'node:fs/promises';

export interface PortHolder {
  readonly pid: number;
  /** The process's short name, e.g. `systemd-resolve`. */
  readonly command: string;
}

/** Tables larger than this are not searched: this runs once, before an error message, and must stay quick. */
const MOST_PROCESSES = 4096;

/**
 * The process that listens on a local port, by /proc: null if there is none, if it belongs to another user or process
 * namespace, or if this is not Linux.
 */
export async function findPortHolder(
  proto: 'udp' | 'tcp',
  port: number,
): Promise<PortHolder | null> {
  try {
    const sockets = new Set<string>();
    for (const table of [proto, `${proto}6`]) {
      for (const inode of await listening(table, port)) sockets.add(`socket:[${inode}]`);
    }
    if (sockets.size === 0) return null;
    const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    for (const pid of processes.slice(0, MOST_PROCESSES)) {
      if (Number(pid) !== process.pid && (await holdsOne(pid, sockets))) {
        const command = (await readFile(`/proc/${pid}/comm`, 'utf8')).trim();
        return { pid: Number(pid), command };
      }
    }
  } catch {
    // No /proc, or the process ended while we looked: then nobody can be named.
  }
  return null;
}

/** The inodes of sockets of /proc/net/TABLE bound to the port (tcp: in state LISTEN). */
async function listening(table: string, port: number): Promise<string[]> {
  let text: string;
  try {
    text = await readFile(`/proc/self/net/${table}`, 'utf8');
  } catch {
    return [];
  }
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  const inodes: string[] = [];
  for (const line of text.split('\n').slice(1)) {
    const words = line.trim().split(/\s+/);
    const [, local = '', , state = ''] = words;
    const inode = words[9];
    if (inode === undefined || !local.endsWith(`:${wanted}`)) continue;
    if (table.startsWith('udp') || state === '0A') inodes.push(inode);
  }
  return inodes;
}

async function holdsOne(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  let files: string[];
  try {
    files = await readdir(`/proc/${pid}/fd`);
  } catch {
    return false;
  }
  for (const file of files) {
    try {
      if (sockets.has(await readlink(`/proc/${pid}/fd/${file}`))) return true;
    } catch {
      continue;
    }
  }
  return false;
}
