/** `reload`: loads a changed Corefile without a restart. */
import { optional } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, value, Wrong, wrong, type Value } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { Watcher, type ReloadWatch } from './watcher.ts';

const plain = duration('DURATION');

function limited(show: string, accepts: (ms: number) => boolean, text: string): Value<number> {
  return value(
    show,
    (word) => {
      const ms = plain.read(word);
      if (ms instanceof Wrong) return ms;
      return accepts(ms) ? ms : wrong(text);
    },
    (ms) => plain.print(ms),
  );
}

const syntax = directive({
  name: 'reload',
  summary: 'reloads the Corefile when it changes, without a restart',
  repeat: 'first',
  unread: ['lines'],
  args: {
    intervalMs: optional(
      limited('INTERVAL', (ms) => ms >= 2000, 'interval value must be greater or equal to 2s'),
      {
        default: 30_000,
        help: 'how often to check the Corefile and its imported files, at least 2s',
      },
    ),
    jitterMs: optional(
      limited(
        'JITTER',
        (ms) => ms === 0 || ms >= 1000,
        'jitter value must be 0 or greater or equal to 1s',
      ),
      {
        default: 15_000,
        help: 'the actual interval is chosen once from INTERVAL ± JITTER/2, so that replicas do not check at the same time; JITTER is at most half of INTERVAL',
      },
    ),
  },
});

export const reload: Plugin = definePlugin({
  syntax,
  operational: true,
  control({ intervalMs, jitterMs }, context) {
    const { random, clock, configuration, log, metrics } = context;
    // The server increments it, and registering it here makes it 0 from the first scrape on.
    metrics.counter(
      'coredns_reload_failed_total',
      'Counter of the number of failed reload attempts.',
    );
    const jitter = Math.min(jitterMs, intervalMs / 2);
    const offset = jitter > 0 ? random.integer(Math.max(1, Math.floor(jitter))) - jitter / 2 : 0;
    const watcher = context.keep('reload/watcher', () => new Watcher(clock));
    const watch: ReloadWatch = { intervalMs: intervalMs + offset, configuration, log };
    context.onStart(() => watcher.begin(watch));
    context.onServing(() => watcher.tell(watch));
    context.onStop(() => watcher.end(watch));
  },
});
