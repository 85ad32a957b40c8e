/** The story of `curl backend` on a real node, with CoreDNS and with ndots as the cluster's DNS. */
import { after, before, describe, test } from 'node:test';
import { setImage } from './cluster-dns.ts';
import { assertStoryOfBackend, assertStoryOfExternalName, startBackend } from './curl-story.ts';
import { NodeCluster } from './node-cluster.ts';
import { COREDNS_IMAGE, NDOTS_IMAGES } from './node-images.ts';
import { noNode } from './node-programs.ts';

/** Finds processes by their sockets. */
const sockets = { words: [], hasNames: true };
const servers = { CoreDNS: COREDNS_IMAGE, ndots: NDOTS_IMAGES[0] };

describe('capture -o flow on a real node', { skip: noNode() ?? false }, () => {
  let node: NodeCluster;
  before(async () => {
    node = await NodeCluster.start();
    await startBackend(node);
  });
  after(() => node?.[Symbol.asyncDispose]());

  for (const [title, image] of Object.entries(servers))
    describe(`with ${title}`, () => {
      before(() => setImage(node, image));

      test('shows curl backend: the query, the server, the connection, its translation, and the pod that accepted it', () =>
        assertStoryOfBackend(node, sockets));

      test('shows curl of an external name: each name of the search path, and the query to the upstream', () =>
        assertStoryOfExternalName(node, sockets));
    });
});
