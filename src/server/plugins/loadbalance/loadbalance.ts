/** `loadbalance`: how the plugin is set up in both planes. */
import { whyFailed } from '../../base/why-failed.ts';
import type { Reply } from '../../wire/reply.ts';
import { FILE_MAX, readFileText } from '../../base/read-file.ts';
import { every, type Timer } from '../../base/clock.ts';
import { printDuration, parseDuration } from '../../base/duration.ts';
import { andThen, isLater } from '../../base/maybe.ts';
import { Problem } from '../../base/problem.ts';
import { seededRandom } from '../../base/random.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import {
  definePlugin,
  type Next,
  type Plugin,
  type WorkerContext,
} from '../../engine/contract/plugin.ts';
import { MESSAGE_MAX } from '../../wire/iana.ts';
import { Arranger } from './arranger.ts';
import { readWeights, Weights, type NameWeights } from './weights.ts';
import { position } from '../../corefile/positions.ts';
import { list, setting } from '../../corefile/properties.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Options } from '../../corefile/syntax.ts';
import { duration, net, worded } from '../../corefile/word-values.ts';

/** The order of addresses, which is random, or random with the first address drawn by weight. */
type BalancePolicy =
  | { readonly kind: 'round_robin' }
  | { readonly kind: 'weighted'; readonly file: string };

const syntax = directive({
  name: 'loadbalance',
  summary: 'changes the order of addresses in replies',
  repeat: 'merge',
  args: {
    policy: position<BalancePolicy>(
      '[round_robin | weighted FILE]',
      'shuffle addresses and mail exchangers (default), or put one address first, drawn by the weights in FILE',
      (line) => {
        if (line.left === 0) return { kind: 'round_robin' };
        const word = line.take();
        if (word.text === 'round_robin') return { kind: 'round_robin' };
        if (word.text !== 'weighted') {
          return line.refuse(`unknown policy: ${word.text}`, word.place, {
            hint: 'The policies are round_robin and weighted FILE.',
          });
        }
        if (line.left === 0) {
          return line.refuse('missing weight file argument', word.place, {
            remedy: 'Write: loadbalance weighted FILE',
          });
        }
        return { kind: 'weighted', file: line.take().text };
      },
    ),
  },
  properties: {
    reloadMs: setting(
      'reload',
      worded(duration('DURATION', { minMs: 0 }), (text, reason) =>
        parseDuration(text) === null ? `invalid reload duration '${text}'` : reason,
      ),
      { help: 'how often to check the weight file (default 30s; 0: never)' },
    ),
    prefer: list('prefer', net('CIDR'), { min: 0, help: 'put addresses in these networks first' }),
  },
  check({ policy, reloadMs, prefer, at }): readonly Problem[] {
    const other =
      policy.kind === 'round_robin' ? reloadMs !== null && 'reload' : prefer.length > 0 && 'prefer';
    if (other === false) return [];
    return [
      pluginProblem('loadbalance', at, `unknown property '${other}'`, {
        code: 'property-unknown',
        hint:
          other === 'reload'
            ? 'Only `loadbalance weighted FILE` has a file to reload.'
            : 'Weights already determine the first address.',
      }),
    ];
  },
});

type LoadbalanceOptions = Options<typeof syntax>;

const RELOAD_MS = 30_000;

/** Changes the order of addresses in replies (loadbalance.md). */
export const loadbalance: Plugin = definePlugin({ syntax, control, setup });

function control({ policy, reloadMs }: LoadbalanceOptions, context: ControlContext): void {
  if (policy.kind !== 'weighted') return;
  const file = policy.file;
  const path = context.path(file);
  const period = reloadMs ?? RELOAD_MS;
  let text: string | null = null;
  let weights: readonly NameWeights[] = [];
  context.onJoin(() => [weights]);
  /** @throws Problem if a file cannot be read or is invalid */
  const load = (): boolean => {
    const found = readText(path, file);
    if (found === null) {
      if (period === 0) throw missing(file, path);
      context.log.warning(
        `Failed to open weight file:${path}. Will try again in ${printDuration(period)}`,
      );
      return false;
    }
    if (found === text) return false;
    text = found;
    weights = readWeights(found, file);
    return true;
  };
  load();
  if (period === 0) return;
  let timer: Timer | null = null;
  context.onStart(() => {
    timer = every(context.clock, period, () => {
      try {
        if (!load()) return;
        context.log.info(`Successfully reloaded weight file ${path}`);
        context.publish(weights);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        context.log.error(
          `${error.message.replace('plugin/loadbalance: ', '')}; the previous weights stay in use`,
        );
      }
    });
  });
  context.onStop(() => timer?.cancel());
}

function readText(path: string, file: string): string | null {
  try {
    return readFileText(path, FILE_MAX.small);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new Problem({
      code: 'file-unreadable',
      text: `plugin/loadbalance: weight file ${file} cannot be read: ${whyFailed(error)}`,
      remedy: `Make ${path} readable by the user that the server runs as.`,
      cause: error,
    });
  }
}

function missing(file: string, path: string): Problem {
  return new Problem({
    code: 'file-missing',
    text: `plugin/loadbalance: weight file ${file} does not exist`,
    hint: 'With `reload 0` the file would never be checked again.',
    remedy: `Create ${path}, or remove \`reload 0\`.`,
  });
}

function setup({ policy, prefer }: LoadbalanceOptions, context: WorkerContext, next: Next): Next {
  // Predicting the order gains a client nothing, so a fast, well-seeded generator is sufficient.
  const random = seededRandom(context.random.integer(0x7fffffff) + 1);
  const weights = policy.kind === 'weighted' ? new Weights(random) : null;
  if (weights !== null)
    context.onMessage((message) => weights.replace(message as readonly NameWeights[]));
  const arranger = new Arranger({ random, prefer, weights });
  const arrangeLater = (reply: Reply, wanted: number): Reply =>
    arranger.arrange(reply, wanted % TYPES, false, Math.floor(wanted / TYPES));
  return (query) => {
    const { type, owned } = query;
    // A query that still belongs to the listener is answered before the next one is read. Replies to other queries may
    // be stored, so they must be complete.
    const limit = owned ? MESSAGE_MAX : query.limit;
    const reply = next(query);
    if (isLater(reply)) return andThen(reply, arrangeLater, limit * TYPES + type);
    return arranger.arrange(reply, type, !owned, limit);
  };
}

/** Record types are below this number. */
const TYPES = 0x1_0000;
