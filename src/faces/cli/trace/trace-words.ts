/** Wording shared by all output formats of a trace. */
import { printHostPort } from '../../../server/base/ip.ts';
import type { QueryDocument, TraceDocument } from '../../../tools/resolver/trace-document.ts';

/** The addresses and aliases in a reply, or a word that says why there are none (`NXDOMAIN`, `DROP` …). */
export function answer(query: QueryDocument): string {
  return query.data.length > 0 ? query.data.join(' ') : query.answer;
}

/** The settings in resolv.conf as this client interprets them. */
export function settings(document: TraceDocument): string {
  const { conf } = document;
  const search = conf.search.length === 0 ? [] : [`search ${conf.search.join(' ')}`];
  return [`nameserver ${serversOf(document)}`, ...search, `ndots:${conf.ndots}`].join('; ');
}

/** The name servers, with the port unless it is 53. */
export function serversOf({ conf, queries }: TraceDocument): string {
  const serverPort = queries[0]?.serverPort ?? 53;
  return conf.servers.map((server) => serverOf({ server, serverPort })).join(' ');
}

/** A name server, with the port unless it is 53. */
export function serverOf({
  server,
  serverPort,
}: Pick<QueryDocument, 'server' | 'serverPort'>): string {
  return serverPort === 53 ? server : printHostPort(server, serverPort);
}

/** Suggests what to do if no server replied. */
export function hint({ live, queries }: TraceDocument): string | null {
  if (!live || queries.length === 0) return null;
  const silent = queries.every(({ answer: text }) => text === 'DROP');
  if (!silent) return null;
  return `No reply arrived from ${[...new Set(queries.map(({ server }) => server))].join(' ')}. A cluster's DNS is reachable only from its nodes and pods. Run this there, use another server (@SERVER), or plan without sending (--plan, --corefile FILE).`;
}

const glossary: Readonly<Record<string, string>> = {
  NXDOMAIN: 'the server reports that the name does not exist',
  NODATA: 'the name exists but has no address of that kind',
  SERVFAIL: 'the server failed to get an answer',
  REFUSED: 'the server refuses to answer this client',
  TC: 'the answer did not fit into one packet',
};

/** Explains the answer labels in use, for readers who rarely see them. */
export function glossaryOf({ queries }: TraceDocument): readonly (readonly [string, string])[] {
  const seen = new Set(
    queries
      .filter((query) => query.data.length === 0)
      .flatMap((query) => query.answer.split(/[ (]/).slice(0, 1)),
  );
  return Object.entries(glossary).filter(([word]) => seen.has(word));
}
