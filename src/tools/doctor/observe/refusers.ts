/** Servers that refuse queries which their peers answer, and clients that one server refuses. */
import { MIN_CASES, NEARLY_ALL } from '../thresholds/evidence.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { answered, addOutcomes, noOutcomes, type Outcomes } from './outcomes.ts';
import { serveTheSame } from './roles.ts';

/** Some refuse while others do not. */
export interface Refusers {
  readonly refusing: readonly string[];
  readonly answering: readonly string[];
}

/**
 * Servers behind one address that refuse (nearly) every query for these names, and those that refuse
 * none; null: no server does while another answers.
 */
export function refusingPods(observed: Observations, names: readonly NameView[]): Refusers | null {
  const byServer = new Map<string, Outcomes>();
  for (const { servers } of names)
    for (const [server, outcomes] of servers) {
      const sum = byServer.get(server) ?? noOutcomes();
      addOutcomes(sum, outcomes);
      byServer.set(server, sum);
    }
  const all = [...byServer].filter(([server]) => observed.backends.get(server) !== undefined);
  const refusing = all.filter(
    ([, each]) => each.refused >= MIN_CASES && each.refused >= NEARLY_ALL * answered(each),
  );
  const answering = all.filter(
    ([server, each]) =>
      each.refused === 0 &&
      answered(each) >= MIN_CASES &&
      refusing.some(([other]) => serveTheSame(observed, server, other)),
  );
  return split(refusing, answering);
}

/** The clients of a server that it refuses all of these names, and those that it answers them. */
export function refusedClients(
  { refusals, clients }: Observations,
  server: string,
  names: readonly NameView[],
): Refusers | null {
  const byClient = new Map<string, { refused: number; isAnswered: boolean }>();
  for (const { name, type } of names)
    for (const { client, refused, isAnswered } of refusals.of(type, name)) {
      if (clients.get(client)?.servers.has(server) !== true) continue;
      const sum = byClient.get(client);
      byClient.set(client, {
        refused: (sum?.refused ?? 0) + refused,
        isAnswered: isAnswered || sum?.isAnswered === true,
      });
    }
  return split(
    [...byClient].filter(([, each]) => each.refused >= MIN_CASES && !each.isAnswered),
    [...byClient].filter(([, each]) => each.refused === 0 && each.isAnswered),
  );
}

function split(
  refusing: readonly (readonly [string, unknown])[],
  answering: readonly (readonly [string, unknown])[],
): Refusers | null {
  if (refusing.length === 0 || answering.length === 0) return null;
  return {
    refusing: refusing.map(([address]) => address),
    answering: answering.map(([address]) => address),
  };
}
