import { TYPE } from '../../../server/wire/iana.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { percent, share } from '../texts.ts';
import { COSTLY_SHARE, MIN_MEASURED_QUERIES } from '../thresholds/evidence.ts';

/** Most of the traffic is reverse lookups. */
export const reverseLookups: FindingKind = {
  code: 'ND2006',
  title: 'A large share of the queries are reverse lookups (PTR)',
  name: 'reverse lookups in bulk',
  inCapture({ types, total, names, clients, reverse: { asked } }) {
    if (total.asked < MIN_MEASURED_QUERIES) return unknown('too few queries');
    if (asked < MIN_MEASURED_QUERIES || asked < COSTLY_SHARE * total.asked)
      return excluded(`${percent(asked, total.asked)} of the queries are reverse lookups`);
    const different = names.list.filter(({ type }) => type === TYPE.PTR).length;
    const whole = types.get(TYPE.PTR)?.asked ?? 0;
    return {
      severity: 'warning',
      confidence: 1,
      seen: [
        whole === asked
          ? `${share(asked, total.asked)} queries are PTR queries, for ${different} different addresses.`
          : `${share(asked, total.asked)} queries are reverse lookups. For ${asked - whole} of these, the capture contains only the beginning of the name.`,
      ],
      why: 'A program that writes logs or statistics looks up the name of every address that it sees. There are so many addresses that caches do not help, so the queries go upstream, where they reach packet limits.',
      fix: [
        'Turn off reverse lookups in that program (HostnameLookups off, UseDNS no, resolve: false …).',
        'Answer private ranges in the cluster instead of forwarding them upstream.',
      ],
      prove: 'ndots capture FILE --type PTR -o flow shows the clients and addresses',
      disproved: '',
      counted: new Map(
        clients.list.flatMap(({ address, reverse }) =>
          reverse > 0 ? [[address, reverse] as const] : [],
        ),
      ),
    };
  },
};
