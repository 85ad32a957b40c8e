/** Chooses the program that sets the rules. */
import { dirname } from 'node:path';
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import { IptablesRules } from './iptables.ts';
import { NftablesRules } from './nftables.ts';
import { nodeRules, type RuleSet, type RuleParts } from './packet-rules.ts';
import { findProgram } from '../runtime/programs.ts';

export interface ChooseRulesParts extends RuleParts {
  readonly program: 'auto' | 'iptables' | 'nftables';
  /** Name of the nft table and of the iptables lists. */
  readonly name: string;
  readonly path: string;
  readonly log: Log;
}

/**
 * Returns the rules with the program that sets them, which is iptables if installed and otherwise nft.
 * @throws Problem
 */
export function chooseRules(parts: ChooseRulesParts): readonly RuleSet[] {
  const { program, name, path, log } = parts;
  const rules = nodeRules(parts);
  const families = ([4, 6] as const).filter((family) =>
    rules.some((rule) => rule.family === family),
  );
  const needed = families.map((family) => (family === 4 ? 'iptables' : 'ip6tables'));
  const iptables = needed.map((each) => findProgram(`${each}-restore`, path));
  if (program !== 'nftables' && iptables.every((found) => found !== null)) {
    return families.map(
      (family, index) =>
        new IptablesRules({
          family,
          rules: rules.filter((rule) => rule.family === family),
          directory: `${dirname(iptables[index]!)}/`,
          list: family === 4 ? name : `${name}6`,
        }),
    );
  }
  const nft = findProgram('nft', path);
  if (program !== 'iptables' && nft !== null) {
    const onUnowned = (why: string): void =>
      log.warning(`the table ${name} is not guarded against other programs: ${why}`);
    return [new NftablesRules({ rules, program: nft, table: name, onUnowned })];
  }
  const wanted = program === 'iptables' ? needed[0] : 'nft';
  const missing = program === 'auto' ? `neither ${needed[0]} nor nft` : `no ${wanted}`;
  throw new Problem({
    code: 'no-rules-program',
    text: `rules cannot be set, because ${missing} is installed`,
    hint: 'Without rules, queries to the cluster DNS address do not reach the node cache.',
    remedy:
      'Install iptables or nftables, or set the rules up by other means: -setupiptables=false',
  });
}
