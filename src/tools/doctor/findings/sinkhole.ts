/** Names with an address that no client can connect to. */
import { isAddressType } from '../../../server/wire/iana.ts';
import { blockListTest } from '../observe/block-lists.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { listed, sentence } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** The unspecified addresses and loopback. */
const NOWHERE = /^(?:0\.0\.0\.0|127\.\d+\.\d+\.\d+|::1?)$/;
/** Loopback is right for this name (RFC 6761). */
const LOCAL = /(?:^|\.)localhost\./;

export const sinkhole: FindingKind = {
  code: 'ND4043',
  title: 'Names resolve to 0.0.0.0 or a loopback address',
  name: 'names with an address that leads nowhere',
  inCapture(observed, claims) {
    const found = observed.names.list.filter(
      ({ type, outcomes }) => isAddressType(type) && outcomes.found > 0,
    );
    if (found.length === 0) return unknown('no address was found');
    const isOfList = blockListTest(found);
    const views = found.filter(
      ({ name, addresses }) =>
        addresses.length > 0 &&
        addresses.every((address) => NOWHERE.test(address)) &&
        !LOCAL.test(name) &&
        !isOfList(name) &&
        !claims.names.has(name),
    );
    const count = views.reduce((sum, { outcomes }) => sum + outcomes.found, 0);
    if (count < MIN_CASES)
      return excluded('hardly any answer contains 0.0.0.0 or a loopback address');
    const names = [...new Set(views.map(({ name }) => name))];
    for (const name of names) claims.names.add(name);
    const addresses = [...new Set(views.flatMap((view) => view.addresses))];
    const servers = [...serversOfNames(views)];
    return {
      severity: 'warning',
      confidence: 0.9,
      seen: [
        sentence(
          `${count} answers from ${listed(servers)} contain ${listed(addresses)}. They are for ${listed(names)}`,
        ),
      ],
      why: 'An advertising or malware filter answers with such an address instead of the name’s own, or the record itself is wrong. Programs get "connection refused", or reach their own pod.',
      fix: [
        'Remove the names from the upstream’s block list (Pi-hole, AdGuard, a firewall’s DNS), or forward them to a server without it.',
        'If the zone itself contains the address, correct the record.',
      ],
      prove: `run ndots query ${names[0]!} @${servers[0] ?? 'SERVER'}, then again with @9.9.9.10 (which does not filter)`,
      disproved: 'the authoritative server returns the same address',
      affected: names.slice(0, MIN_CASES),
    };
  },
};
