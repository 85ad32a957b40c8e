/** Servers that do not return the question as it was spelled, and resolvers that insist on it. */
import { median } from '../observe/median.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share, took } from '../texts.ts';
import { LATE_MS, MIN_CASES } from '../thresholds/evidence.ts';
import { MIXED_CASE_SHARE } from '../thresholds/answers.ts';

export const changedCase: FindingKind = {
  code: 'ND3019',
  title: 'A server changes the case of names, and clients discard its replies',
  name: 'replies that change the case of their question',
  inCapture({ questionCase: { asked, changed, ignored }, names: seenNames }, claims) {
    if (asked < MIN_CASES) return unknown('no client mixes upper and lower case in its questions');
    if (ignored.length < MIN_CASES || ignored.length < MIXED_CASE_SHARE * changed)
      return excluded(
        changed === 0
          ? 'replies preserve the case of the question'
          : `${share(changed, asked)} replies changed the case of their question, and ${ignored.length} of these queries were repeated`,
      );
    const exchanges = ignored.map(({ exchange }) => exchange);
    const servers = [...new Set(exchanges.map(({ server }) => server.address))];
    const clients = exchanges.map(({ client }) => client.address);
    const names = [...new Set(exchanges.map(({ name }) => name))];
    const middle = median(ignored.map(({ againMs }) => againMs));
    const waited = middle > LATE_MS;
    const failing = seenNames.list.filter(
      ({ name, outcomes }) => outcomes.servfail > 0 && names.includes(name),
    );
    const servfail = failing.reduce((sum, { outcomes }) => sum + outcomes.servfail, 0);
    for (const { name } of failing) claims.names.add(name);
    return {
      severity: waited || servfail >= MIN_CASES ? 'critical' : 'warning',
      confidence: 0.93,
      seen: [
        `${share(changed, asked)} replies to mixed-case questions changed the case of the question. They came from ${listed(servers)}.`,
        `${ignored.length} of these queries were repeated by ${listed(clients)}, typically ${took(middle)} after the reply. Names: ${listed(names)}`,
        servfail > 0 &&
          `${servfail} queries for the same names were then answered with SERVFAIL, because two answers with different addresses look forged. These names are ${listed(failing.map(({ name }) => name))}`,
      ],
      why: `Some resolvers (Unbound with use-caps-for-id, c-ares, public resolvers) choose the case of each letter at random. They accept a reply only if its question has the same spelling, which makes replies harder to forge ("0x20"). A server has to return the question byte for byte, and a server that lower-cases it looks like a forger. ${waited ? 'The client drops the reply and waits for another one until it times out.' : 'The resolver retries, at last in lower case, so each name costs several queries.'}`,
      fix: [
        `Configure ${listed(servers)} to return the question unchanged (RFC 1035, section 4.1.2). A proxy, a rewrite or an old appliance is changing it.`,
        'Until then, set use-caps-for-id: no in Unbound, or caps-exempt for the server’s zones. In c-ares, leave ARES_FLAG_DNS0x20 unset.',
      ],
      prove: `run dig @${servers[0]} WwW.ExAmPlE.cOm and check that the question section of the reply shows the same capitals`,
      disproved: 'the reply’s question has the same capitals when the server is queried directly',
      exchanges,
    };
  },
};
