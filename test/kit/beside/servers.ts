/** Runs CoreDNS and ndots with the same server blocks on separate addresses. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom, type Random } from '../../../src/server/base/random.ts';
import { start, type Child } from '../child.ts';

export const hosts = { coredns: '127.0.0.1', ndots: '127.0.0.9' } as const;

const ndots = [join(import.meta.dirname, '../../../bin/ndots'), 'serve', '-workers', '1'];

/**
 * Starts a server with these blocks and waits until it is serving or has exited.
 * @param program CoreDNS's path, or null to start ndots
 */
async function startServer(
  who: keyof typeof hosts,
  program: readonly string[] | null,
  text: string,
  directory: string,
): Promise<{ readonly child: Child; readonly serves: boolean }> {
  const file = join(directory, `Corefile.${who}`);
  writeFileSync(file, addressed(text, who));
  const child = start(who, [...(program ?? ndots), '-conf', file]);
  let ended = false;
  void child.exitCode.then(() => (ended = true));
  for (let tries = 0; tries < 1200 && !ended; tries++) {
    if (/^(?:CoreDNS|ndots)-\d[^\n]*\n[^\n]+\n/m.test(child.output()))
      return { child, serves: true };
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return { child, serves: false };
}

export interface Both {
  readonly theirs: Child;
  readonly ours: Child;
  /** The output of both servers. */
  output(): string;
}

/**
 * Generates batches of Corefiles until time is up, one per seed starting from `seed`, and passes both servers to
 * `compare`. A batch that both refuse is skipped, because its random rules conflict.
 * @param program the CoreDNS program
 * @throws AssertionError if only one of them serves
 */
export async function eachBatch<T>(
  program: string,
  { seed, seconds }: { readonly seed: number; readonly seconds: number },
  draw: (random: Random, directory: string) => { readonly text: string; readonly drawn: T },
  compare: (
    batch: number,
    both: Both,
    drawn: T,
    directory: string,
    random: Random,
  ) => Promise<void>,
): Promise<void> {
  for (let batch = seed, end = Date.now() + seconds * 1000; Date.now() < end; batch++) {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-beside-'));
    const random = seededRandom(batch * 7919);
    const { text, drawn } = draw(random, directory);
    const [theirs, ours] = await Promise.all([
      startServer('coredns', [program], text, directory),
      startServer('ndots', null, text, directory),
    ]);
    const output = (): string => `${theirs.child.output()}\n${ours.child.output()}`;
    if (theirs.serves || ours.serves) {
      assert.ok(theirs.serves && ours.serves, `seed ${batch}: ${output()}`);
      await compare(
        batch,
        { theirs: theirs.child, ours: ours.child, output },
        drawn,
        directory,
        random,
      );
      await Promise.all([theirs.child.stop(), ours.child.stop()]);
    }
    rmSync(directory, { recursive: true, force: true });
  }
}

/**
 * Makes the server reload with different blocks.
 * @returns false if it did not
 */
export async function reloadServer(
  child: Child,
  who: keyof typeof hosts,
  text: string,
  directory: string,
): Promise<boolean> {
  writeFileSync(join(directory, `Corefile.${who}`), addressed(text, who));
  const before = child.output().length;
  child.signal('SIGUSR1');
  for (let tries = 0; tries < 1200; tries++) {
    const said = child.output().slice(before);
    if (/Reloading complete/.test(said)) return true;
    if (/Restart failed/.test(said)) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return false;
}

function addressed(text: string, who: keyof typeof hosts): string {
  return text.replaceAll(/\b(bind|prometheus) 127\.0\.0\.1\b/g, `$1 ${hosts[who]}`);
}
