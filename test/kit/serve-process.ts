/** Runs `ndots serve` as a process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printed, start, type Child } from './child.ts';
import { freePorts } from './free-ports.ts';

const program = join(import.meta.dirname, '../../bin/ndots');

/** A server running on loopback, with its metrics. */
export interface ServeProcess {
  readonly child: Child;
  readonly port: number;
  readonly metricsUrl: string;
  /** The metrics as Prometheus text. */
  metrics(): Promise<string>;
  /** Returns the sum of all series of a metric whose labels contain the text. */
  sum(metric: string, labels?: string): Promise<number>;
  /** Replaces the body of the server block and reloads. The server's log shows when the new body is in use. */
  reload(directives: string): void;
  stop(): Promise<void>;
}

/**
 * Starts `ndots serve` on 127.0.0.1 and waits until it is serving.
 * @param directives the body of the only server block, in addition to `bind` and `prometheus`
 * @param options.descriptors the limit on open files
 * @param options.onPort receives the port before the server starts
 */
export async function serveProcess(
  directives: string,
  options: {
    readonly words?: readonly string[];
    readonly descriptors?: number;
    readonly onPort?: (port: number) => void;
  } = {},
): Promise<ServeProcess> {
  const [port, metricsPort] = await freePorts(2);
  const directory = mkdtempSync(join(tmpdir(), 'ndots-process-'));
  const corefile = join(directory, 'Corefile');
  const write = (body: string): void =>
    writeFileSync(
      corefile,
      `.:${port} {\n  bind 127.0.0.1\n  prometheus 127.0.0.1:${metricsPort}\n${body}\n}\n`,
    );
  write(directives);
  const words = [program, 'serve', '-conf', corefile, ...(options.words ?? [])];
  const { descriptors } = options;
  const child =
    descriptors === undefined
      ? start('ndots', words)
      : start('ndots', ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', ...words]);
  options.onPort?.(port);
  await printed(child, /ndots-\d/, 20_000);
  const metricsUrl = `http://127.0.0.1:${metricsPort}/metrics`;
  const metrics = async (): Promise<string> => (await fetch(metricsUrl)).text();
  return {
    child,
    port,
    metricsUrl,
    metrics,
    async sum(metric, labels = '') {
      const lines = (await metrics())
        .split('\n')
        .filter((line) => line.startsWith(metric) && /^[{ ]/.test(line.slice(metric.length)));
      return lines
        .filter((line) => line.includes(labels))
        .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
    },
    reload(body) {
      write(body);
      child.signal('SIGUSR1');
    },
    async stop() {
      child.signal('SIGKILL');
      await child.exitCode;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
