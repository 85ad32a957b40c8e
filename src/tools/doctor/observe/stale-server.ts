/** DNS pods of which some return an address that no longer accepts connections. */
import { TYPE } from '../../../server/wire/iana.ts';
import { fromTo, listed, sentence } from '../texts.ts';
import { MIN_SAME_ANSWERS } from '../thresholds/answers.ts';
import type { AnswerSet } from './answer-sets.ts';
import type { FailedContact } from './failed-contacts.ts';
import type { Observations } from './observations.ts';

/** The cluster’s DNS returns a failing address and a working one in turn. */
export interface StaleServer {
  /** The servers that return the failing address; empty: the capture does not show which ones do. */
  readonly servers: readonly string[];
  readonly name: string;
  readonly seen: readonly string[];
}

/** The first of these connections whose address comes from other DNS pods than the working one; null: none does. */
export function staleServer(
  observed: Observations,
  failing: readonly FailedContact[],
): StaleServer | null {
  for (const { contact, name, otherWorks } of failing) {
    if (name === null || otherWorks === null || !observed.domains.isOfCluster(name)) continue;
    for (const type of [TYPE.A, TYPE.AAAA]) {
      const sets = observed.names.get(name, type)?.sets?.list ?? [];
      const old = setsWith(sets, contact.server, otherWorks);
      const fine = setsWith(sets, otherWorks, contact.server);
      if (!comeInTurn(old, fine)) continue;
      const servers = new Set(old.map(({ server }) => server));
      const isByServer = !fine.some(({ server }) => servers.has(server));
      // Answers of one address may depend on the client.
      if (!isByServer && observed.clients.size > 1) continue;
      const textOf = (all: readonly AnswerSet[], address: string): string =>
        isByServer
          ? `${listed([...new Set(all.map(({ server }) => server))])} returned ${address} (${timesText(all)})`
          : `${address} (${timesText(all)})`;
      const texts = [textOf(old, contact.server), textOf(fine, otherWorks)] as const;
      return {
        name,
        servers: isByServer ? [...servers] : [],
        seen: [
          isByServer
            ? sentence(`For ${name}, ${texts.join(', while ')}, in turn`)
            : sentence(
                `For ${name}, ${listed([...servers])} returned two answers in turn: ${texts.join(' and ')}`,
              ),
          `Connections to ${otherWorks} succeed, and those to ${contact.server} fail.`,
        ],
      };
    }
  }
  return null;
}

/** The sets with one address and without the other one. */
function setsWith(all: readonly AnswerSet[], one: string, other: string): readonly AnswerSet[] {
  return all.filter(
    ({ addresses, count, size }) =>
      count >= MIN_SAME_ANSWERS &&
      size === addresses.length &&
      addresses.includes(one) &&
      !addresses.includes(other),
  );
}

/** True if each of them came back after the other one, so that the name did not just change. */
function comeInTurn(old: readonly AnswerSet[], fine: readonly AnswerSet[]): boolean {
  return [old, fine].every((all) => all.some(({ returned }) => returned >= MIN_SAME_ANSWERS));
}

function timesText(sets: readonly AnswerSet[]): string {
  const count = sets.reduce((sum, each) => sum + each.count, 0);
  const from = Math.min(...sets.map(({ firstMs }) => firstMs));
  const to = Math.max(...sets.map(({ lastMs }) => lastMs));
  return `${count} times, ${fromTo(from, to)}`;
}
