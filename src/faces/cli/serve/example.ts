/** The example cluster of `ndots serve --example`. */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pickPort, probeEndpoint } from '../../../server/transport/probe.ts';

export interface Example {
  readonly file: string;
  /** The current Corefile, with the selected ports. */
  read(): string;
  /** Commands to try, printed at startup. */
  readonly lines: string;
}

const ADDRESS = '127.0.0.1';
const file = fileURLToPath(new URL('../../../../examples/Corefile', import.meta.url));

/** Ports in `examples/Corefile`. */
const PORTS = { dns: 1053, health: 8080, ready: 8181, metrics: 9153 } as const;

/**
 * The example cluster on 127.0.0.1, on other HTTP ports if the default ones are taken.
 * @param wanted the DNS port, which must be free; 0 for any free port
 */
export async function openExample(wanted: number = PORTS.dns): Promise<Example> {
  const dns = wanted === 0 ? await pickPort(ADDRESS) : wanted;
  const chosen = new Map<number, number>([
    [PORTS.dns, dns],
    ...(await Promise.all(
      [PORTS.health, PORTS.ready, PORTS.metrics].map(
        async (port) => [port, await freePort(port)] as const,
      ),
    )),
  ]);
  const url = (port: number, path: string): string =>
    `http://${ADDRESS}:${chosen.get(port)}/${path}`;
  const at = `dig @${ADDRESS} -p ${dns}`;
  const directory = join(dirname(file), 'cluster');
  const near = relative('.', directory);
  return {
    file,
    read: () =>
      readFileSync(file, 'utf8').replace(/:(\d+)\b/g, (whole, port: string) =>
        chosen.has(Number(port)) ? `:${chosen.get(Number(port))}` : whole,
      ),
    lines: [
      '',
      `The example cluster is served on ${ADDRESS}:${dns}. Try this in another terminal:`,
      `  ${at} backend.critical-app.svc.cluster.local`,
      `  ${at} +noall +answer db.shop.svc.cluster.local SRV`,
      `  ${at} -x 172.17.0.4 +short`,
      `Metrics: ${url(PORTS.metrics, 'metrics')}  Probes: ${url(PORTS.health, 'health')} ${url(PORTS.ready, 'ready')}`,
      `The objects are in ${near.startsWith('..') ? directory : near}. Change one and query again. Press Ctrl-C to stop.`,
      '',
    ].join('\n'),
  };
}

/** Returns the port, or a different one if it is in use. */
async function freePort(port: number): Promise<number> {
  try {
    await probeEndpoint({ scheme: 'tls', address: ADDRESS, port });
    return port;
  } catch {
    return pickPort(ADDRESS);
  }
}
