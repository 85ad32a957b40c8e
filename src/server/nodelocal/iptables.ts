/** Rules that are set with iptables, for one address family and in both of its tables. */
import { ruleGeneration } from '../runtime/netlink.ts';
import { runProgram } from '../runtime/programs.ts';
import {
  leadsHere,
  RULE_LIMIT_MS,
  RuleFailure,
  type Ensured,
  type PacketRule,
  type RuleSet,
} from './packet-rules.ts';
import { readSaved, sameAs, ruleWords, type SavedRule } from './iptables-rule.ts';

export interface IptablesParts {
  readonly family: 4 | 6;
  /** The rules of that family. */
  readonly rules: readonly PacketRule[];
  /** The directory that contains the programs, with a trailing slash. */
  readonly directory: string;
  /** The `recent` module's list that holds the leases. */
  readonly list: string;
}

/** Seconds for which iptables waits while another program, such as kube-proxy, changes rules. */
const WAIT = ['-w', '5'];
/** Exit code if another program held the lock for all of that time. */
const LOCKED = 4;

/**
 * Maintains the rules for one address family. It reads them with `iptables-save` and changes them with a single call of
 * `iptables-restore`. This changes a table atomically, so the rules are never partially in effect. Other programs'
 * rules stay unchanged, even if they have the same comments.
 */
export class IptablesRules implements RuleSet {
  readonly name = 'iptables';
  readonly #rules: ReadonlyMap<PacketRule['table'], readonly WantedRule[]>;
  readonly #save: string;
  readonly #restore: string;
  readonly #plain: string;
  /** True if it sets nftables rules. The kernel counts changes to those. */
  #counted = false;
  /** Generation of the rules at the last check that found them correct. */
  #generation: number | null = null;

  constructor({ family, rules, directory, list }: IptablesParts) {
    this.#plain = `${directory}${family === 4 ? 'iptables' : 'ip6tables'}`;
    this.#save = `${this.#plain}-save`;
    this.#restore = `${this.#plain}-restore`;
    const wanted = rules.map((rule) => wantedOf(rule, list));
    this.#rules = new Map(
      (['raw', 'filter'] as const).map((table) => [
        table,
        wanted.filter(({ rule }) => rule.table === table),
      ]),
    );
  }

  async ensure(): Promise<Ensured> {
    const generation = ruleGeneration();
    if (this.#counted && generation !== null && generation === this.#generation)
      return { missing: 0 };
    this.#generation = null;
    let missing = 0;
    for (const [table, wanted] of this.#rules) {
      const present = await this.#present(table);
      const wrong = misplaced(wanted, present);
      if (wrong === 0) continue;
      missing += wrong;
      const places = new Map<string, number>();
      const additions = wanted.map(({ rule: { chain }, words }) => {
        const place = (places.get(chain) ?? 0) + 1;
        places.set(chain, place);
        return `-I ${chain} ${place} ${words.map(quoted).join(' ')}`;
      });
      await this.#change(table, [...deletions(wanted, present), ...additions]);
    }
    // Use the generation before the check, so that changes made during the check are noticed next time.
    this.#generation = generation;
    return { missing };
  }

  divert(): Promise<void> {
    return this.#delete(leadsHere);
  }

  remove(): Promise<void> {
    return this.#delete(() => true);
  }

  async #delete(which: (rule: PacketRule) => boolean): Promise<void> {
    for (const [table, all] of this.#rules) {
      const wanted = all.filter(({ rule }) => which(rule));
      if (wanted.length === 0) continue;
      const lines = deletions(wanted, await this.#present(table));
      if (lines.length > 0) await this.#change(table, lines);
    }
  }

  leave(): void {
    // Nothing ends with this process.
  }

  get removal(): readonly string[] {
    return [...this.#rules].flatMap(([table, wanted]) => {
      // Those that lead packets here are removed first.
      const order = wanted.toSorted(
        (a, b) => Number(b.rule.action === 'notrack') - Number(a.rule.action === 'notrack'),
      );
      const lines = order.map(({ rule: { chain }, words }) => deletion(chain, words));
      const all = [`*${table}`, ...lines, 'COMMIT'].map((line) => `'${line}'`).join(' ');
      const wait = WAIT.join(' ');
      // Delete them all at once if each exists once, and otherwise one by one, as often as each exists.
      const each = lines.map(
        (line) => `while ${this.#plain} ${wait} -t ${table} ${line}; do :; done`,
      );
      return [
        `printf '%s\\n' ${all} | ${this.#restore} --noflush ${wait} || { ${each.join('; ')}; }`,
      ];
    });
  }

  async #present(table: PacketRule['table']): Promise<readonly SavedRule[]> {
    const text = await this.#run([this.#save, '-t', table]);
    this.#counted = text.includes('(nf_tables)');
    return readSaved(text);
  }

  async #change(table: PacketRule['table'], lines: readonly string[]): Promise<void> {
    const input = [`*${table}`, ...lines, 'COMMIT', ''].join('\n');
    await this.#run([this.#restore, '--noflush', ...WAIT], input);
  }

  async #run(words: readonly string[], input = ''): Promise<string> {
    const { code, stdout, stderr } = await runProgram(words, { input, limitMs: RULE_LIMIT_MS });
    if (code === 0) return stdout;
    const [first = 'no word'] = stderr
      .trimEnd()
      .split('\n')
      .filter((line) => !/^#|^Try `/.test(line));
    const locked = code === LOCKED || stderr.includes('xtables lock');
    throw new RuleFailure(`${words.join(' ')} failed (${code}): ${first}`, locked);
  }
}

interface WantedRule {
  readonly rule: PacketRule;
  readonly words: readonly string[];
}

function wantedOf(rule: PacketRule, list: string): WantedRule {
  return { rule, words: ruleWords(rule, list) };
}

/** Returns lines that delete each of these rules as often as it exists. */
function deletions(
  wanted: readonly WantedRule[],
  present: readonly SavedRule[],
): readonly string[] {
  return present.flatMap((saved) => {
    const { rule: { chain } = { chain: '' }, words = [] } =
      wanted.find(({ rule, words }) => saved.chain === rule.chain && sameAs(saved, words)) ?? {};
    // Use our own arguments, because iptables does not accept some of its own output (`--mask` in `recent`).
    return chain === '' ? [] : [deletion(chain, words)];
  });
}

function deletion(chain: string, words: readonly string[]): string {
  return `-D ${chain} ${words.map(quoted).join(' ')}`;
}

/** Counts the rules that are missing, or that come after a rule they must precede. */
function misplaced(wanted: readonly WantedRule[], present: readonly SavedRule[]): number {
  let wrong = 0;
  const last = new Map<string, number>();
  for (const { rule, words } of wanted) {
    const before = last.get(rule.chain) ?? -1;
    const at = present.findIndex((saved) => saved.chain === rule.chain && sameAs(saved, words));
    if (at < 0 || at < before) wrong++;
    // Only rules that release an address must precede those that direct traffic to it.
    else if (rule.action === 'lapse' || rule.action === 'renew') last.set(rule.chain, at);
  }
  return wrong;
}

/** Quotes a word for iptables-restore and for a shell. */
function quoted(word: string): string {
  return /^[\w.:/-]+$/.test(word) ? word : `"${word}"`;
}
