/** Programs that tests start, and their output. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A program being measured. It is started here, and stopped by its own process ID. */
export interface Child {
  readonly name: string;
  readonly pid: number;
  /** The CPU seconds, user and system, that all its threads have used so far. */
  cpuSeconds(): number;
  /** MiB. */
  residentMiB(): number;
  /** The output so far, from both streams. */
  output(): string;
  tell(line: string): void;
  end(): void;
  signal(signal: NodeJS.Signals): void;
  /** Resolves with the exit code when it has exited, or with null if a signal killed it. */
  readonly exitCode: Promise<number | null>;
  stop(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** `cpu` pins it to one CPU, so that the server and the load do not share one. */
export function start(
  name: string,
  words: readonly string[],
  options: { readonly cpu?: number; readonly env?: NodeJS.ProcessEnv } = {},
): Child {
  const observed = underObservation(words);
  const [program, ...rest] =
    options.cpu === undefined ? observed : ['taskset', '-c', String(options.cpu), ...observed];
  const child = spawn(program!, rest, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: options.env ?? process.env,
  });
  running.add(child);
  let text = '';
  const take = (chunk: Buffer): void => {
    if (text.length < 1_000_000) text += chunk.toString('utf8');
  };
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const ended = new Promise<number | null>((resolve) => {
    child.on('exit', (code) => {
      running.delete(child);
      resolve(code);
    });
    child.on('error', (error) => {
      text += `${name} could not be started: ${error.message}\n`;
      running.delete(child);
      resolve(null);
    });
  });
  const pid = child.pid ?? -1;
  return {
    name,
    pid,
    cpuSeconds: () => cpuSeconds(pid),
    residentMiB: () => {
      const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
      return Number(line?.[1]) / 1024;
    },
    output: () => text,
    tell: (line) => void child.stdin.write(`${line}\n`),
    end: () => void child.stdin.end(),
    signal: (signal) => void child.kill(signal),
    exitCode: ended,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), 3000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** A directory where each `ndots` process writes a list of its system calls. Set by tools/seccomp.ts. */
const observations = process.env['NDOTS_SYSTEM_CALLS'];

/** A directory with seccomp profiles (`serve.json` and so on). Set by test/real/seccomp-verbs.long.test.ts. */
const profiles = process.env['NDOTS_SECCOMP_PROFILES'];

/**
 * Replaces `ndots` with the command that the image runs. Either counts its system calls in one file per subcommand, or
 * applies the subcommand's profile.
 */
function underObservation(words: readonly string[]): readonly string[] {
  const at = words.findIndex((word) => word.endsWith('bin/ndots'));
  if ((observations === undefined && profiles === undefined) || at < 0) return words;
  const [verb = 'serve', ...rest] = words.slice(at + 1);
  const main = join(import.meta.dirname, '../../dist/faces/cli/main.js');
  const flags = ['--max-semi-space-size=2', '--max-old-space-size=192'];
  const program = [process.execPath, ...flags, main, verb, ...rest];
  if (observations === undefined) {
    const profile = join(profiles!, `${verb}.json`);
    if (!existsSync(profile)) return words;
    const bounded = [process.execPath, join(import.meta.dirname, 'under-seccomp.ts'), profile];
    return [...words.slice(0, at), ...bounded, ...program];
  }
  const file = join(observations, `${verb}-${process.pid}-${Math.random().toString(36).slice(2)}`);
  // With -D the program itself is the child, so signals reach it.
  const strace = ['strace', '-D', '-f', '-qq', '-c', '-U', 'name', '-o', file];
  return [...words.slice(0, at), ...strace, ...program];
}

const TICKS_PER_SECOND = 100;

function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Builds a DNS question in wire format, with RD set and without EDNS. */
export function question(name: string, type: number, id = 1): Buffer {
  const labels = name
    .replace(/\.$/, '')
    .split('.')
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const head = Buffer.from([id >> 8, id & 0xff, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, ...labels, Buffer.from([0, type >> 8, type & 0xff, 0, 1])]);
}

export async function printed(child: Child, pattern: RegExp, limitMs = 60_000): Promise<void> {
  const begin = performance.now();
  while (!pattern.test(child.output())) {
    if (performance.now() - begin > limitMs)
      throw new Error(`${child.name} did not print ${pattern}:\n${child.output()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until 127.0.0.1:port answers `name` with data, and returns how many milliseconds that took. */
export async function answered(
  port: number,
  name: string,
  limitMs = 20_000,
  accept: (reply: Buffer) => boolean = (reply) => reply.readUInt16BE(6) > 0,
): Promise<number> {
  const socket = createSocket('udp4');
  const begin = performance.now();
  try {
    return await new Promise<number>((resolve, reject) => {
      const ask = setInterval(() => socket.send(question(name, 1), port, '127.0.0.1'), 5);
      const limit = setTimeout(
        () =>
          done(() => reject(new Error(`no answer for ${name} on port ${port} in ${limitMs} ms`))),
        limitMs,
      );
      const done = (then: () => void): void => {
        clearInterval(ask);
        clearTimeout(limit);
        then();
      };
      socket.on('error', () => undefined);
      socket.on('message', (reply) => {
        if (accept(reply)) done(() => resolve(performance.now() - begin));
      });
    });
  } finally {
    socket.close();
  }
}
