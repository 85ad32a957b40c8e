import type { WorkerChannel } from '../../server/contract/plugin.ts';
import { Cluster } from './cluster.ts';
import type { Ack, Fact, FeedMessage } from './facts.ts';

/** A worker's end of the feed: keeps its picture of the cluster up to date and says so. */
export function followCluster(channel: WorkerChannel): Cluster {
  const cluster = new Cluster();
  channel.onMessage((received) => {
    const message = received as FeedMessage;
    switch (message.kind) {
      case 'facts': {
        const ack = takeIn(cluster, message.facts, message.seq, message.at);
        channel.post(ack);
        return;
      }
      case 'serials':
        cluster.serial = message.own;
        cluster.importedSerial = message.imported;
        return;
      case 'synced':
        cluster.complete();
        return;
    }
  });
  return cluster;
}

function takeIn(cluster: Cluster, facts: readonly Fact[], seq: number, at: number): Ack {
  const changes: Record<'cluster' | 'headless', number[]> = { cluster: [], headless: [] };
  for (const fact of facts) {
    cluster.apply(fact, at);
    if (fact.about !== 'slice' || fact.triggeredAt === 0) continue;
    const form = cluster.serviceNamed(fact.namespace, fact.service)?.form;
    if (form === 'cluster' || form === 'headless') changes[form].push(fact.triggeredAt);
  }
  return { seq, ...changes };
}
