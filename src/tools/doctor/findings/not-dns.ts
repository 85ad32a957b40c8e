/** Losses that other connections share. */
import type { Observations } from '../observe/observations.ts';
import { lossRate } from '../observe/outcomes.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import type { Contact } from '../observe/contacts.ts';
import { lossyPods, type PodLosses } from '../observe/pods-apart.ts';
import { keysOf, listed, percent, share } from '../texts.ts';
import { MIN_CASES, MIN_QUERIES, RARE_SHARE } from '../thresholds/evidence.ts';
import {
  MAX_LISTED_CONTACTS,
  MIN_OTHER_CONNECTIONS,
  OTHERS_ALIKE,
  REST_OF_OTHERS,
  SURE_REPEATED,
} from '../thresholds/transport.ts';

export const notDns: FindingKind = {
  code: 'ND3090',
  title: 'It is not DNS, because other connections are lost in the same way',
  name: 'the network as a whole',
  inCapture(observed, claims) {
    const { opened, repeated } = observed.others;
    const exceeded = observed.counters.get('trackingExceeded') ?? 0;
    if (opened < MIN_OTHER_CONNECTIONS && exceeded === 0)
      return unknown(
        'the capture contains no other connections to compare with (capture more than port 53)',
      );
    const losses = claims.open;
    const rate = lossRate(observed.total);
    const otherRate = opened === 0 ? 0 : repeated / opened;
    const alike =
      opened >= MIN_OTHER_CONNECTIONS &&
      repeated >= 2 &&
      otherRate >= OTHERS_ALIKE.ofRate * rate &&
      otherRate >= OTHERS_ALIKE.share;
    if (
      exceeded === 0 &&
      repeated >= 2 &&
      otherRate >= RARE_SHARE &&
      !(losses.length >= MIN_CASES && alike)
    )
      return unknown(
        `${share(repeated, opened)} other connections had to repeat their first packet, and the lost queries have a separate cause`,
      );
    // A fact about nearly all of them holds for the rest.
    if (alike && exceeded === 0 && losses.length < REST_OF_OTHERS * claims.explained.length)
      return excluded('another finding explains the losses of other connections');
    if (losses.length < MIN_CASES || !(alike || exceeded > 0))
      return excluded('other connections open without loss');
    claims.take(losses);
    const pods = lossyPods(observed);
    const difference = repeatedText(observed);
    const servers = keysOf(losses, ({ server }) => server.address);
    return {
      title:
        pods === null
          ? this.title
          : 'It is not DNS, because the path to some addresses loses packets of all kinds',
      severity: 'critical',
      confidence: exceeded > 0 ? 0.95 : repeated >= SURE_REPEATED ? 0.9 : 0.75,
      seen: [
        `${share(observed.total.lost, observed.total.asked)} DNS queries got no reply${pods === null ? `; they were sent to ${listed(servers)}` : ''}.`,
        opened > 0 &&
          `${share(repeated, opened)} other TCP connections had to repeat their first packet.`,
        pods !== null &&
          `Queries are lost on the way to ${lossText(pods.lossy)} or back, but not with ${lossText(pods.spared)}.`,
        difference,
        exceeded > 0 &&
          `The network card counts ${exceeded} packets beyond the allowance for tracked connections (conntrack_allowance_exceeded).`,
      ],
      why:
        pods === null
          ? 'First packets of all kinds are lost. The flow table in the hypervisor or a firewall is full, or a network card or link drops packets. Most new flows are DNS, so DNS appears in the logs first, but it is not the cause.'
          : `Packets on the path to ${listed(pods.lossy.map(({ address }) => address))} are lost, DNS or not, while others from the same clients arrive. A link, a tunnel, a network card or a node on that path drops packets. DNS appears in the logs first, but it is not the cause.`,
      fix: [
        pods !== null &&
          `Find the nodes of ${listed(pods.lossy.map(({ address }) => address))} (kubectl get pods -A -o wide) and of the clients. Between these, look for lost packets (mtr), and compare with the path to ${listed(pods.spared.map(({ address }) => address))}.`,
        'Check the network below DNS, including instance type limits (ethtool -S eth0 | grep exceeded), interface drops (ip -s link) and firewall flow tables.',
        'Until then, open fewer connections (keep-alive, connection pools), or use a larger instance type.',
      ],
      prove:
        'tcpdump "tcp[tcpflags] & tcp-syn != 0" on the node shows repeated SYNs to many different addresses',
      disproved: `connections to other services open immediately while DNS queries are lost (here, ${percent(repeated, opened)} do not)`,
      exchanges: losses,
    };
  },
};

/** The addresses to which first packets were repeated, and those to which they were not. Null if there are none. */
function repeatedText(observed: Observations): string | null {
  const contacts = observed.contacts.at(observed.lastMs);
  const failing = contacts
    .filter((contact) => contact.repeated > 0)
    .toSorted((one, other) => other.repeated - one.repeated)
    .slice(0, MAX_LISTED_CONTACTS);
  const fine = contacts
    .filter((contact) => contact.repeated === 0 && contact.opened >= MIN_QUERIES)
    .slice(0, MAX_LISTED_CONTACTS);
  return failing.length === 0
    ? null
    : `First packets were repeated to ${listed(failing.map(contactText))}${fine.length === 0 ? '' : `, but not to ${listed(fine.map(contactText))}`}.`;
}

function lossText(pods: readonly PodLosses[]): string {
  return listed(pods.map(({ address, lost, asked }) => `${address} (${lost} of ${asked})`));
}

/** `10.39.4.4 port 80 at 10.36.8.80 (13 repeats, 50 connections)` */
function contactText({ server, port, behind, repeated, opened }: Contact): string {
  const pods = behind.size === 0 ? '' : ` at ${listed([...behind])}`;
  return `${server} port ${port}${pods} (${repeated} ${repeated === 1 ? 'repeat' : 'repeats'}, ${opened} connections)`;
}
