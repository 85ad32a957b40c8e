/** `cancel`: a time limit for each query. */
import { isLater } from '../../base/maybe.ts';
import { optional } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { duration, value, Wrong, wrong } from '../../corefile/word-values.ts';
import type { Counter } from '../../metrics/registry.ts';
import { definePlugin, type Plugin, type WorkerContext } from '../../engine/contract/plugin.ts';
import { RCODE } from '../../wire/iana.ts';
import { failure, type Reply } from '../../wire/reply.ts';

const plain = duration('TIMEOUT');

const timeout = value(
  'TIMEOUT',
  (word) => {
    const ms = plain.read(word);
    if (ms instanceof Wrong)
      return new Wrong(`invalid duration: ${JSON.stringify(word.text)}`, ms.hint, ms.form);
    return ms > 0 ? ms : wrong(`invalid negative duration: ${JSON.stringify(word.text)}`);
  },
  (ms) => plain.print(ms),
);

const syntax = directive({
  name: 'cancel',
  summary: 'limits how long a query may take',
  repeat: 'last',
  unread: ['lines'],
  args: { timeoutMs: optional(timeout, { default: 5001, help: 'how long a query may take' }) },
});

/** Answers SERVFAIL if a query gets no reply in time. A reply that arrives later is still cached. */
export const cancel: Plugin = definePlugin({
  syntax,
  setup({ timeoutMs }, context, next) {
    const expired = context.metrics.counter(
      'ndots_cancel_expired_total',
      'Queries answered with SERVFAIL because they took too long.',
    );
    return (query) => {
      const reply = next(query);
      return isLater(reply) ? within(reply, timeoutMs, context, expired) : reply;
    };
  },
});

function within(
  reply: PromiseLike<Reply>,
  timeoutMs: number,
  { clock }: WorkerContext,
  expired: Counter,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      expired.add(1);
      resolve(failure(RCODE.SERVFAIL, 'cancel', new Error('context deadline exceeded')));
    });
    const over = (): void => timer.cancel();
    reply.then(resolve, reject).then(over, over);
  });
}
