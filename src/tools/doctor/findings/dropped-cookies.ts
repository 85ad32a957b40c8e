/** Queries with an EDNS cookie that get no reply, while other queries with EDNS are answered. */
import { takeSilence } from '../observe/consequences.ts';
import { lossRate } from '../observe/outcomes.ts';
import { listed, share } from '../texts.ts';
import { SPARED_SHARE } from '../thresholds/evidence.ts';
import { EDNS_LOST, MIN_EDNS_QUERIES } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** The COOKIE option (RFC 7873) decides whether a query is answered. */
export const droppedCookies: FindingKind = {
  code: 'ND4066',
  title: 'Queries with an EDNS cookie get no reply, while others with EDNS are answered',
  name: 'queries with EDNS cookies that are dropped',
  inCapture(observed, claims) {
    const both = observed.servers.list.filter(
      ({ cookies, cookieless }) =>
        cookies.asked >= MIN_EDNS_QUERIES && cookieless.asked >= MIN_EDNS_QUERIES,
    );
    if (both.length === 0)
      return unknown('no server got queries with EDNS both with and without cookies');
    for (const { address, cookies, cookieless, cookieClients, cookielessClients } of both) {
      if (lossRate(cookies) < EDNS_LOST || lossRate(cookieless) > SPARED_SHARE) continue;
      const losses = claims
        .openTo(address)
        .filter(({ cookie, protocol }) => cookie && protocol === 'udp');
      if (losses.length < MIN_EDNS_QUERIES) continue;
      const same = [...cookieClients].filter((client) => cookielessClients.has(client));
      takeSilence(observed, claims, losses);
      const senders = listed([...cookieClients]);
      return {
        subject: address,
        severity: 'critical',
        confidence: same.length > 0 ? 0.95 : 0.8,
        seen: [
          `Of queries with a cookie (EDNS option 10) from ${senders} to ${address}, ${share(cookies.lost, cookies.asked)} got no reply. Of queries with EDNS but without a cookie, ${share(cookieless.lost, cookieless.asked)} got none.`,
          same.length > 0
            ? `${listed(same)} sent both kinds, so neither the client nor its path is at fault.`
            : `No client sent both kinds. Queries without cookies came from ${listed([...cookielessClients])}.`,
        ],
        why: `Either a firewall or another device that inspects DNS drops queries with an EDNS option that it does not know, or ${address} itself does. The COOKIE option (RFC 7873) protects against forged replies. BIND and c-ares send it by default, while Unbound and CoreDNS do not, so only some servers are affected.`,
        fix: [
          `Make the device in front of ${address} pass EDNS options, or exclude DNS to it from inspection. Capture on both sides of it to see where the queries end.`,
          `Until then, send no cookies from ${senders}: in BIND, send-cookie no, or server ${address} { send-cookie no; }.`,
        ],
        prove: `run dig +cookie ${losses[0]!.name} @${address}, then the same with +nocookie; only the second query is answered`,
        disproved: 'both queries are answered when they are sent from the same host',
        exchanges: losses,
      };
    }
    return excluded('queries with EDNS cookies are answered like those without');
  },
};
