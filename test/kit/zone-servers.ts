/** Real authoritative servers on loopback, each with one zone file. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createSocket } from 'node:dgram';
import { join } from 'node:path';
import { printed, start, type Child } from './child.ts';

export interface ZoneServer {
  readonly child: Child;
  readonly port: number;
}

/** Runs NSD with these zones, which map a name to a file. */
export async function startNsd(
  directory: string,
  port: number,
  zones: Readonly<Record<string, string>>,
  more = '',
  options = '',
): Promise<ZoneServer> {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'nsd.conf');
  const lines = Object.entries(zones).map(
    ([zone, file]) => `zone:\n  name: ${zone}\n  zonefile: ${file}\n${more}`,
  );
  writeFileSync(
    config,
    `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  zonesdir: "${directory}"
  database: ""
  pidfile: "${directory}/nsd.pid"
  xfrdfile: "${directory}/xfrd.state"
  xfrdir: "${directory}"
  zonelistfile: "${directory}/zone.list"
  cookie-secret-file: ""
  server-count: 1
  verbosity: 2
  rrl-ratelimit: 0
${options}
remote-control:
  control-enable: no
${lines.join('')}`,
  );
  const child = start('nsd', ['nsd', '-d', '-c', config]);
  await printed(child, /nsd started|notice: nsd/i, 10_000);
  return { child, port };
}

/**
 * Runs Knot with these zones, which map a name to a file. `more` is added to each zone, and `top` to the configuration.
 */
export async function startKnot(
  directory: string,
  port: number,
  zones: Readonly<Record<string, string>>,
  more = '',
  top = '',
): Promise<ZoneServer> {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'knot.conf');
  const lines = Object.entries(zones).map(
    ([zone, file]) => `  - domain: ${zone}\n    file: "${file}"\n    semantic-checks: off\n${more}`,
  );
  writeFileSync(
    config,
    `server:
    rundir: "${directory}"
    listen: 127.0.0.1@${port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "${directory}"
log:
  - target: stdout
    any: info
${top}
zone:
${lines.join('')}`,
  );
  const child = start('knotd', ['knotd', '-c', config]);
  await printed(child, /started in the foreground|server started/i, 10_000);
  return { child, port };
}

export async function startNamed(
  directory: string,
  port: number,
  zones: string,
  options = '',
): Promise<ZoneServer> {
  mkdirSync(directory, { recursive: true });
  const config = join(directory, 'named.conf');
  writeFileSync(
    config,
    `options {
  directory "${directory}";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  pid-file "${directory}/named.pid";
  session-keyfile "${directory}/session.key";
  recursion no;
  notify no;
  dnssec-validation no;
  minimal-responses no;
  allow-transfer { any; };
  ${options}
};
controls { };
${zones}`,
  );
  const child = start('named', ['named', '-g', '-c', config, '-n', '1']);
  await printed(child, /\brunning\b/, 15_000);
  return { child, port };
}

export class UdpClient {
  readonly #socket = createSocket('udp4');
  readonly #port: number;
  #take: ((reply: Uint8Array) => void) | null = null;

  constructor(port: number) {
    this.#port = port;
    this.#socket.on('message', (reply) => this.#take?.(new Uint8Array(reply)));
  }

  /** @throws Error if there is no reply */
  async ask(message: Uint8Array): Promise<Uint8Array> {
    for (let tries = 0; tries < 5; tries++) {
      const reply = await new Promise<Uint8Array | null>((resolve) => {
        const timer = setTimeout(() => resolve(null), 1000);
        this.#take = (bytes) => {
          if (bytes[0] !== message[0] || bytes[1] !== message[1]) return;
          clearTimeout(timer);
          resolve(bytes);
        };
        this.#socket.send(message, this.#port, '127.0.0.1');
      });
      if (reply !== null) return reply;
    }
    throw new Error(`no reply from port ${this.#port}`);
  }

  close(): void {
    this.#socket.close();
  }
}
