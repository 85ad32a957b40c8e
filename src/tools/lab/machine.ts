/**
 * Determines what this machine can provide for a lab, including privileges, programs and kernel features. Everything is
 * tested rather than guessed.
 */
import { libc } from '../../server/runtime/libc.ts';
import { findProgram } from '../../server/runtime/programs.ts';
import { call } from './commands.ts';
import type { RuleMode } from './cluster-plan.ts';

/** Something that a story requires, either a program or a kernel feature. */
export type Need =
  | { readonly program: string }
  /** An iptables rule that the kernel must accept, in `iptables-restore` syntax: `-m statistic --mode random`. */
  | { readonly rule: string; readonly part: string };

const basics = ['unshare', 'setpriv', 'mount', 'nsenter', 'ip'] as const;
const ruleProgram: Readonly<Record<RuleMode, string>> = {
  iptables: 'iptables-restore',
  nftables: 'nft',
};
/** A ruleset that uses every feature of kube-proxy's nftables mode, to test the kernel for all of them at once. */
const NFT_PARTS = `table ip ndots-lab-probe {
  chain nat { type nat hook prerouting priority -100; ct state new numgen random mod 2 vmap { 0 : accept, 1 : drop }; meta l4proto tcp dnat ip to numgen random mod 2 map { 0 : 192.0.2.1 . 80, 1 : 192.0.2.2 . 80 }; }
}
`;

/** Describes missing features as instructions, or returns an empty list if nothing is missing. */
export function lacksOfMachine(path: string, mode: RuleMode = 'iptables'): readonly string[] {
  if (process.platform !== 'linux') return [`Linux (this is ${process.platform})`];
  const lacks: string[] = [];
  if (process.getuid?.() !== 0) lacks.push('root (try sudo)');
  for (const name of basics)
    if (findProgram(name, path) === null) lacks.push(`the program ${name}`);
  const program = ruleProgram[mode];
  const other = mode === 'iptables' && findProgram('nft', path) !== null ? ' (or -m nftables)' : '';
  if (findProgram(program, path) === null) lacks.push(`the program ${program}${other}`);
  try {
    libc();
  } catch (error) {
    lacks.push(`system calls (${(error as Error).message})`);
  }
  if (lacks.length > 0) return lacks;
  if (call(['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', 'true']).code !== 0)
    return ['permission to create namespaces (in a container: --privileged)'];
  const nat =
    mode === 'nftables'
      ? call(['unshare', '--net', 'nft', '-f', '-'], { input: NFT_PARTS }).code
      : inScratch('-A PREROUTING -j RETURN');
  if (nat !== 0) lacks.push(`NAT in the kernel (${mode === 'nftables' ? 'nft_nat' : 'nf_nat'})`);
  return lacks;
}

export function lacksOfStory(
  needs: readonly Need[],
  path: string,
  mode: RuleMode = 'iptables',
): readonly string[] {
  return needs.flatMap((need) => {
    if ('program' in need)
      return findProgram(need.program, path) === null ? [`the program ${need.program}`] : [];
    // nft's requirements were already tested along with the machine's.
    if (mode === 'nftables') return [];
    return inScratch(need.rule) === 0 ? [] : [`${need.part} in the kernel`];
  });
}

/** Tests whether the kernel accepts a rule in the nat table, using a temporary network namespace. */
function inScratch(rule: string): number | null {
  const input = `*nat\n${rule}\nCOMMIT\n`;
  return call(['unshare', '--net', 'iptables-restore', '--noflush'], { input }).code;
}
