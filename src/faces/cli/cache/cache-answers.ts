/** Queries or flushes the caches of several servers. */
import { NameError, parseName } from '../../../server/wire/name.ts';
import type { CacheReport } from '../../../server/plugins/cache/control.ts';
import { AdminFailure, type AdminServer } from './admin-servers.ts';
import { readReports } from './cache-reports.ts';
import { usage } from '../option-values.ts';

/** Servers queried in parallel. */
const PARALLEL = 8;

export type CacheAction = 'explain' | 'flush';

/** A server's report about a name, or `failure`. */
export interface CacheAnswer {
  readonly server: string;
  readonly name: string;
  readonly reports: readonly CacheReport[];
  readonly failure: AdminFailure | null;
}

export interface CacheAnswerDocument {
  readonly server: string;
  readonly name: string;
  readonly caches: readonly CacheReport[];
  readonly failure?: string;
  readonly remedy?: string;
}

/**
 * Sends each server one request per name.
 * @param names absolute
 * @param below true to include all subdomains
 */
export async function askCaches(
  servers: readonly AdminServer[],
  action: CacheAction,
  names: readonly string[],
  below: boolean,
): Promise<readonly CacheAnswer[]> {
  const all: CacheAnswer[][] = servers.map(() => []);
  let next = 0;
  const take = async (): Promise<void> => {
    for (let index = next++; index < servers.length; index = next++) {
      const server = servers[index]!;
      for (const name of names) {
        const asked = { server: server.name, name };
        try {
          const found = await server.run(`cache/${action}`, { name, below: String(below) });
          const reports = readReports(found);
          if (reports === null) throw noReport(server.name);
          all[index]!.push({ ...asked, reports, failure: null });
        } catch (error) {
          if (!(error instanceof AdminFailure)) throw error;
          all[index]!.push({ ...asked, reports: [], failure: error });
          break;
        }
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, take));
  return all.flat();
}

function noReport(server: string): AdminFailure {
  return new AdminFailure(
    `${server} did not send a cache report`,
    'Another program, or another ndots version, listens there.',
  );
}

export function answerDocument({
  server,
  name,
  reports,
  failure,
}: CacheAnswer): CacheAnswerDocument {
  const told = failure === null ? {} : { failure: failure.message, remedy: failure.remedy };
  return { server, name, caches: reports, ...told };
}

/** @throws Problem (`usage`) if no cache can have an entry for this name */
export function checkName(name: string): void {
  try {
    parseName(name);
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw usage(`this is not a domain name: ${error.message}`);
  }
}
