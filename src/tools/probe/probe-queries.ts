/** Queries a server and judges the reply as a client would. Used by most checks. */
import { printHostPort } from '../../server/base/ip.ts';
import { RCODE, rcodeName, typeName } from '../../server/wire/iana.ts';
import { printData } from '../../server/wire/print.ts';
import type { CheckState, Observation, ProbeContext } from './check.ts';
import type { ProbeResult, AskTerms, ProbeQuestion, ProbeServer } from './network.ts';

/** `192.0.2.1:53`. */
export function serverText({ host, port }: ProbeServer): string {
  return printHostPort(host, port);
}

/** The service's addresses and all replicas, without duplicates. */
export function allServers({ vip, replicas }: ProbeContext): readonly ProbeServer[] {
  return uniqueServers([...vip, ...replicas]);
}

export function uniqueServers(servers: readonly ProbeServer[]): readonly ProbeServer[] {
  return [...new Map(servers.map((server) => [serverText(server), server])).values()];
}

/** Builds a question like most clients in pods, over UDP and with EDNS. */
export function question(name: string, type: number, edns: number | null = null): ProbeQuestion {
  return { name, type, edns };
}

/** The part of the context that queries need. */
export type AskingContext = Pick<ProbeContext, 'network' | 'timeoutMs' | 'tries'>;

/** Sends questions, using the context for options that are not given. */
export function ask(
  { network, timeoutMs, tries }: AskingContext,
  server: ProbeServer,
  questions: readonly ProbeQuestion[],
  terms: Partial<AskTerms> = {},
): Promise<readonly ProbeResult[]> {
  return network.ask(server, questions, {
    protocol: 'udp',
    sourcePort: 0,
    timeoutMs,
    tries,
    ...terms,
  });
}

export async function askOne(
  context: AskingContext,
  server: ProbeServer,
  asked: ProbeQuestion,
  terms: Partial<AskTerms> = {},
): Promise<ProbeResult> {
  const [result] = await ask(context, server, [asked], terms);
  return result!;
}

/** Returns the data from the answer's records of this type, sorted and without aliases. */
export function dataOfAnswer({ reply }: ProbeResult, type: number): readonly string[] {
  return (reply?.answer ?? [])
    .filter((record) => record.type === type)
    .map((record) => printData(record.type, record.data))
    .toSorted();
}

/** Returns `NOERROR` with data, `NODATA`, `NXDOMAIN` and so on, or the reason if there is no reply. */
export function outcome(asked: ProbeResult, type: number): string {
  const { reply } = asked;
  if (reply === null) return asked.failure ?? 'no reply';
  if (reply.rcode !== RCODE.NOERROR) return rcodeName(reply.rcode);
  return dataOfAnswer(asked, type).length > 0 ? 'NOERROR' : 'NODATA';
}

/** True if the name exists, which means NOERROR with or without records. */
export function isThere({ reply }: ProbeResult): boolean {
  return reply !== null && reply.rcode === RCODE.NOERROR;
}

export function isMissing({ reply }: ProbeResult): boolean {
  return reply !== null && reply.rcode === RCODE.NXDOMAIN;
}

/** An observation's state and text, without the target. */
export interface ProbeVerdict {
  readonly state: CheckState;
  readonly text: string;
}

export function failed(text: string): ProbeVerdict {
  return { state: 'failed', text };
}

/** The usual verdict, which requires records of the type. */
export function mustHaveData(asked: ProbeResult, { name, type }: ProbeQuestion): ProbeVerdict {
  const what = outcome(asked, type);
  if (what !== 'NOERROR') return failed(`${name} ${typeName(type)}: ${what}`);
  return { state: 'ok', text: `${name} ${typeName(type)}: ${brief(dataOfAnswer(asked, type))}` };
}

/** The verdict for a name that must not exist, which requires NXDOMAIN. */
export function mustBeMissing(asked: ProbeResult, name: string, type: number): ProbeVerdict {
  if (isMissing(asked)) return { state: 'ok', text: 'NXDOMAIN for missing names' };
  const what = outcome(asked, type);
  return failed(asked.reply === null ? what : `${name}: ${what} instead of NXDOMAIN`);
}

/** Builds a target's observation from one or more results. Lost queries turn `ok` into a warning. */
export function observe(
  target: string,
  results: readonly ProbeResult[],
  { state, text }: ProbeVerdict,
): Observation {
  const sent = results.reduce((sum, each) => sum + each.sent, 0);
  const lost = results.reduce((sum, each) => sum + each.lost, 0);
  const times = results.map(({ tookMs }) => tookMs).filter((ms) => ms !== null);
  const again = state === 'ok' && lost > 0;
  return {
    target,
    state: again ? 'warning' : state,
    text: again ? `${text}; ${lost} of ${sent} queries got no reply and were sent again` : text,
    tookMs: times.length === 0 ? null : Math.max(...times),
    sent,
    lost,
  };
}

/** Sends one question to each of the servers at once, and judges each reply. */
export function observeEach(
  context: ProbeContext,
  servers: readonly ProbeServer[],
  asked: ProbeQuestion,
  judge: (result: ProbeResult, asked: ProbeQuestion) => ProbeVerdict = mustHaveData,
  terms: Partial<AskTerms> = {},
): Promise<readonly Observation[]> {
  return Promise.all(
    servers.map(async (server) => {
      const result = await askOne(context, server, asked, terms);
      return observe(serverText(server), [result], judge(result, asked));
    }),
  );
}

/** Prints the first few items in a list on one line. */
export function brief(list: readonly string[], most = 4): string {
  const shown = list.slice(0, most).join(' ');
  return list.length > most ? `${shown} and ${list.length - most} more` : shown;
}
