/** CoreDNS and ndots with the same server blocks, at addresses of their own. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { start, type Child } from '../child.ts';

/** Where each of the two listens. */
export const hosts = { coredns: '127.0.0.1', ndots: '127.0.0.9' } as const;

const ndots = [join(import.meta.dirname, '../../../bin/ndots'), 'serve', '-workers', '1'];

/**
 * Starts a server with these blocks and waits until it serves or has ended.
 * @param program null: ndots
 */
export async function startServer(
  who: keyof typeof hosts,
  program: readonly string[] | null,
  text: string,
  folder: string,
): Promise<{ readonly child: Child; readonly serves: boolean }> {
  const file = join(folder, `Corefile.${who}`);
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

/** Has it take up other blocks. @returns whether it did */
export async function reloadServer(
  child: Child,
  who: keyof typeof hosts,
  text: string,
  folder: string,
): Promise<boolean> {
  writeFileSync(join(folder, `Corefile.${who}`), addressed(text, who));
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
