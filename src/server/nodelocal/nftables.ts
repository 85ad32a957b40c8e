/** Rules that are set with nft, in a separate table for both address families. */
import { ruleGeneration } from '../runtime/netlink.ts';
import { runProgram, startProgram, type StartedProgram } from '../runtime/programs.ts';
import {
  leadsHere,
  RULE_LIMIT_MS,
  RuleFailure,
  type Ensured,
  type PacketRule,
  type RuleSet,
} from './packet-rules.ts';

export interface NftablesParts {
  readonly rules: readonly PacketRule[];
  readonly program: string;
  readonly table: string;
  /** Called once if the kernel or nft is too old for a table that is removed along with its owner. */
  readonly onUnowned: (why: string) => void;
}

/** Milliseconds for which a heartbeat counts. */
const LEASE_MS = 900;
/** Milliseconds that a table may take to appear, and milliseconds between two checks for it. */
const APPEARS_MS = 3000;
const LOOK_MS = 25;
/** Milliseconds to wait after a line is sent to nft, which executes it at once but does not confirm it. */
const DIVERTS_MS = 50;

/** The table's chains, and where they are hooked into the kernel. */
const hooks: Readonly<Record<string, { readonly name: string; readonly at: string }>> = {
  'raw PREROUTING': { name: 'prerouting', at: 'prerouting priority -300' },
  'raw OUTPUT': { name: 'output', at: 'output priority -300' },
  'filter INPUT': { name: 'input', at: 'input priority 0' },
  'filter OUTPUT': { name: 'output-filter', at: 'output priority 0' },
};

/**
 * Maintains a table owned by an `nft` process that reads our commands. The kernel protects it against all other
 * programs, even `nft flush ruleset` (`flags owner`, Linux 5.12), and removes it when that process ends. The process
 * ends when we do. Without kernel support, the table is an ordinary one.
 */
export class NftablesRules implements RuleSet {
  readonly name = 'nftables';
  readonly #parts: NftablesParts;
  #owner: StartedProgram | null = null;
  /** Name of the table in use. While another instance owns our table, this is a second table next to it. */
  #table: string;
  /** nft's output for the complete table, or empty if it has not been created yet. */
  #whole = '';
  /** Generation of the table at the last check. */
  #generation: number | null = null;
  #owned = true;
  #complaints: () => string = () => '';

  constructor(parts: NftablesParts) {
    this.#parts = parts;
    this.#table = parts.table;
  }

  async ensure(): Promise<Ensured> {
    const { length } = this.#parts.rules;
    const generation = ruleGeneration();
    if (this.#whole !== '' && generation !== null && generation === this.#generation)
      return { missing: 0 };
    this.#generation = generation;
    if (this.#whole !== '' && (await this.#list()) === this.#whole) return { missing: 0 };
    const first = this.#whole === '';
    if (!first) await this.remove();
    await this.#make();
    return { missing: first ? 0 : length };
  }

  async #make(): Promise<void> {
    const { table, onUnowned } = this.#parts;
    if (this.#owned) {
      for (const name of [table, `${table}-next`]) {
        this.#table = name;
        if ((await this.#list()) !== null) continue;
        if (await this.#makeOwned()) return;
      }
      this.#table = table;
      this.#endOwner();
      this.#owned = false;
      onUnowned(this.#complaints().trim().split('\n')[0] ?? '');
    }
    await this.#nft(['-f', '-'], `${this.#commands(false).join('\n')}\n`);
    this.#whole = (await this.#list()) ?? '';
  }

  async #makeOwned(): Promise<boolean> {
    this.#endOwner();
    const owner = startProgram([this.#parts.program, '-i'], { stdio: ['pipe', 'ignore', 'pipe'] });
    const complaints = owner.text(2, 10_000);
    let failure = '';
    void owner.ended.then(({ error }) => (failure = error?.message ?? ''));
    this.#complaints = () => `${failure}${complaints()}`;
    owner.stdin?.write(`${this.#commands(true).join('\n')}\n`);
    this.#owner = owner;
    for (let waited = 0; waited < APPEARS_MS && this.#complaints() === ''; waited += LOOK_MS) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const found = await this.#list();
      if (found !== null && found.split('comment "').length > this.#parts.rules.length) {
        this.#whole = found;
        return true;
      }
    }
    this.#endOwner();
    return false;
  }

  #endOwner(): void {
    this.#owner?.stdin?.end();
    this.#owner?.signal('SIGKILL');
    this.#owner = null;
  }

  async divert(): Promise<void> {
    this.#whole = '';
    const chains = [hooks['raw PREROUTING']!.name, hooks['raw OUTPUT']!.name];
    // Make this a single change, so that no tracked replies pass in between.
    const commands = [
      ...chains.map((chain) => `flush chain inet ${this.#table} ${chain}`),
      ...this.#parts.rules
        .filter((rule) => rule.table === 'raw' && !leadsHere(rule))
        .map((rule) => this.#addition(rule)),
    ].join('\n');
    if (this.#owner === null) return this.#nft(['-f', '-'], `${commands}\n`);
    this.#owner.stdin?.write(`${commands.replaceAll('\n', ' ; ')}\n`);
    await new Promise((resolve) => setTimeout(resolve, DIVERTS_MS));
  }

  async remove(): Promise<void> {
    this.#whole = '';
    if (this.#owner === null) {
      if ((await this.#list()) !== null)
        await this.#nft(['delete', 'table', 'inet', this.#table], '');
      return;
    }
    const owner = this.#owner;
    this.#endOwner();
    await owner.ended;
    // The kernel removes the table asynchronously.
    for (let waited = 0; waited < APPEARS_MS; waited += LOOK_MS) {
      if ((await this.#list()) === null) return;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  leave(): void {
    this.#endOwner();
  }

  get removal(): readonly string[] {
    return [`${this.#parts.program} delete table inet ${this.#parts.table}`];
  }

  /** Returns the table without its counters, or null if there is none. */
  async #list(): Promise<string | null> {
    const words = [this.#parts.program, '-s', '-t', 'list', 'table', 'inet', this.#table];
    const { code, stdout } = await runProgram(words, { limitMs: RULE_LIMIT_MS });
    return code === 0 ? stdout : null;
  }

  async #nft(words: readonly string[], input: string): Promise<void> {
    const { code, stderr } = await runProgram([this.#parts.program, ...words], {
      input,
      limitMs: RULE_LIMIT_MS,
    });
    if (code === 0) return;
    throw new RuleFailure(
      `nft ${words.join(' ')} failed (${code}): ${stderr.split('\n')[0] ?? ''}`,
    );
  }

  #commands(owned: boolean): readonly string[] {
    const { rules } = this.#parts;
    const table = `inet ${this.#table}`;
    const families = new Set(rules.map(({ family }) => family));
    return [
      `add table ${table}${owned ? ' { flags owner ; }' : ''}`,
      ...[...families].map(
        (family) =>
          `add set ${table} ${leases[family]} { type ${family === 4 ? 'ipv4_addr' : 'ipv6_addr'} ; size 64 ; flags dynamic,timeout ; timeout ${LEASE_MS}ms ; }`,
      ),
      ...Object.values(hooks).map(
        ({ name, at }) => `add chain ${table} ${name} { type filter hook ${at} ; policy accept ; }`,
      ),
      ...rules.map((rule) => this.#addition(rule)),
    ];
  }

  #addition(rule: PacketRule): string {
    const { name } = hooks[`${rule.table} ${rule.chain}`]!;
    return `add rule inet ${this.#table} ${name} ${expression(rule)}`;
  }
}

/** The sets that hold the leases, by family. */
const leases: Readonly<Record<4 | 6, string>> = { 4: 'alive4', 6: 'alive6' };

function expression(rule: PacketRule): string {
  const { family, protocol, from, notFrom, to, fromPort, toPort, action, comment } = rule;
  const ip = family === 4 ? 'ip' : 'ip6';
  const lease = leases[family];
  const words = [
    ...(notFrom === undefined ? [] : [`${ip} saddr != ${notFrom}`]),
    ...(from === undefined ? [] : [`${ip} saddr ${from}`]),
    ...(to === undefined ? [] : [`${ip} daddr ${to}`]),
    ...(fromPort === undefined ? [] : [`${protocol} sport ${fromPort}`]),
    ...(toPort === undefined ? [] : [`${protocol} dport ${toPort}`]),
    ...(action === 'renew' ? [`update @${lease} { ${ip} saddr }`] : []),
    ...(action === 'lapse' ? [`${ip} daddr != @${lease} accept`] : []),
    ...(action === 'notrack' ? ['notrack'] : []),
    ...(action === 'accept' ? ['accept'] : []),
    `comment "${comment}"`,
  ];
  return words.join(' ');
}
