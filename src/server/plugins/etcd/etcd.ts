/** `etcd`: SkyDNS records stored in etcd. */
import { memoryLimit } from '../../runtime/memory-limit.ts';
import { memoryShare } from '../../runtime/memory-share.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { readUpstreamTls } from '../../engine/contract/upstream-tls.ts';
import { transferSources } from '../../zone/transfer-source.ts';
import { EtcdAnswerer, type AnswerSource } from './etcd-answerer.ts';
import { EtcdFollower, KEY_MEMORY } from './follower.ts';
import { roomFor } from './key-memory.ts';
import { syntax } from './etcd-options.ts';
import { EtcdReader, QuerySource } from './per-query.ts';
import { planEtcd, planKey } from './etcd-plan.ts';
import { EtcdReplica } from './replica.ts';
import { etcdTransfers } from './transfer-zone.ts';

/**
 * SkyDNS: answers from service records in etcd. The control part watches etcd (`follower.ts`, over `src/server/etcd/`)
 * and replicates the data to all workers (`store.ts`), which answer from memory (`replica.ts`). With `per_query`, the
 * control part reads from etcd for every query instead (`per-query.ts`).
 */
export const etcd: Plugin = definePlugin({
  syntax,

  control(options, context) {
    const plan = planEtcd(options, (file) => context.path(file));
    // The files are read again for each connection. Reading them now as well reports a missing file as such, rather
    // than as an unreachable etcd.
    readUpstreamTls('etcd', options, context);
    const { clock, log, metrics, random } = context;
    if (options.perQuery) {
      const { maxSearch } = options;
      const key = `${planKey(plan)} per query ${maxSearch}`;
      context.keep(key, () => new EtcdReader({ plan, maxSearch, clock })).serve(context);
      return;
    }
    const key = planKey(plan);
    const share = (): number => memoryShare(memoryLimit(), KEY_MEMORY);
    const room = roomFor(context, key, plan.maxBytes, share);
    const follower = context.replicated(
      key,
      (open) => new EtcdFollower({ plan, open, clock, random, log, metrics, room }),
    );
    context.readiness(() => follower.synced);
    context.onStart(() => {
      follower.start();
      return follower.whenSynced(options.startupTimeoutMs);
    });
  },

  setup(options, context, next) {
    const { clock, metrics, random, writer, ask } = context;
    const failures = metrics.counter(
      'ndots_etcd_read_failures_total',
      'Queries for which reading from etcd failed (`per_query`).',
    );
    let source: AnswerSource;
    if (options.perQuery) {
      const from = random.integer(0x1_0000_0000);
      const waitingMax = options.maxWaiting;
      const reading = new QuerySource(context, clock, { from, waitingMax, failures });
      context.onStop(() => reading.stop());
      source = reading;
    } else {
      const key = planKey(planEtcd(options, (file) => context.path(file)));
      const replica = context.replica(key, () => new EtcdReplica());
      source = replica;
      const { zones, minLeaseTtl, maxLeaseTtl } = options;
      const omitted = metrics.counter(
        'ndots_etcd_transfer_omitted_total',
        'Names omitted from transfers because they include more than 1000 keys.',
      );
      context.offer(
        transferSources,
        etcdTransfers({ replica, zones, clock, minLeaseTtl, maxLeaseTtl, omitted }),
      );
    }
    return new EtcdAnswerer({
      ...options,
      source,
      clock,
      writer,
      ask,
      next,
      refused: metrics.counter(
        'ndots_etcd_refused_total',
        'Queries for names that include more keys than max_search allows.',
      ),
    }).link;
  },
});
