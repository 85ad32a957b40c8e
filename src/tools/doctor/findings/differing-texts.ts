/** What findings say about servers that disagree. */
import type { Finding } from './finding.ts';

type Text = Pick<Finding, 'code' | 'title' | 'why' | 'fix' | 'disproved'>;

/** Texts for DNS pods that disagree. */
export const ofReplicas: Text = {
  code: 'ND8001',
  title: 'DNS pods of the cluster give different answers to the same question',
  why: 'Replicas have different views of the cluster: autopath of CoreDNS knows the client’s pod on one and not yet on another, one lost its connection to the API server, or a name that is new is cached as missing by some of them. A client gets one or the other by chance, even for A and AAAA of one lookup.',
  fix: [
    'If the Corefile has autopath @kubernetes: remove it, or replace it with autopath @name (ndots), which does not depend on pods.',
    'cache { denial 9984 5 }, or disable denial for the cluster’s zone, so that new names appear soon.',
    'See whether one replica has errors of its API connection in its log.',
  ],
  disproved: 'all replicas answer alike a minute later: then the name was new',
};

/** Texts for upstreams that disagree. */
export const ofUpstreams: Text = {
  code: 'ND4005',
  title: 'Upstream servers that take turns do not have the same names',
  why: 'Servers that take turns need the same names. A private server and a public one do not have them: the first NXDOMAIN is final, and the other server, which has the name, is not queried. Lookups fail as often as the wrong one is chosen.',
  fix: [
    'A server block for the private zones, forwarded to the private servers only; the rest to servers of one kind.',
    'forward { policy sequential } hides it, as long as the first server is up.',
  ],
  disproved: 'both servers give the same answer when queried directly',
};
