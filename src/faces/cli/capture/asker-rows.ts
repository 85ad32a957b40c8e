/** Formats the processes behind queries, as text and as JSON. */
import type { Asker, WhyUnknown } from '../../../tools/capture/pair/asker.ts';
import type { SeenExchange } from '../../../tools/capture/pair/seen-exchange.ts';
import type { AttributionCounts } from '../../../tools/capture/process/attribution.ts';
import type { OpenedConnection } from '../../../tools/capture/process/opened-connections.ts';
import { oneLine } from '../../../server/base/visible.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { count } from '../../../server/base/counted.ts';
import { type Paint } from '../page.ts';
import type { PeerNaming } from './capture-names.ts';
import { printElapsed } from '../../../server/base/elapsed.ts';

/** The number of container id digits to show, as container runtimes do. */
const ID_SHOWN = 12;

const reasons: Readonly<Record<WhyUnknown, string>> = {
  closed: 'socket closed',
  elsewhere: 'not on this machine',
  several: 'address in several namespaces',
  ended: 'process ended',
  refused: 'not permitted',
  busy: 'too many sockets or files',
  unseen: 'not seen live',
};

/** `341cbd92c83b/curl[29549]`, `nginx[12],nginx[13]`, `341cbd92c83b/? (process ended)`. */
export function askerText(asker: Asker, paint: Paint): string {
  const { container, processes, why } = asker;
  const where = container === null ? '' : `${container.id.slice(0, ID_SHOWN)}/`;
  const who =
    why === null
      ? processes.map(({ command, pid }) => `${oneLine(command)}[${pid}]`).join(',')
      : paint.dim(`? (${reasons[why]})`);
  return `${where}${who}`;
}

/** The same with its pod, if that is known: `4f498dee9e9c/nginx[20647] in shop/backend-x2x1`. */
export function askerInPod(asker: Asker, paint: Paint): string {
  const pod = asker.container?.pod;
  return `${askerText(asker, paint)}${pod === undefined ? '' : ` in ${oneLine(pod)}`}`;
}

/** More about a process: `curl backend, started by sh[29500], container 341cbd92c83b, pod shop/client-x2x1`. */
export function askerDetails({ container, processes }: Asker): string {
  const parts = [
    ...processes
      .slice(0, 1)
      .flatMap(({ commandLine, parent }) => [
        ...(commandLine === '' ? [] : [oneLine(commandLine)]),
        ...(parent === null ? [] : [`started by ${oneLine(parent.command)}[${parent.pid}]`]),
      ]),
    ...(container === null ? [] : [`container ${container.id.slice(0, ID_SHOWN)}`]),
    ...(container === null || container.podUid === ''
      ? []
      : [`pod ${oneLine(container.pod ?? container.podUid)}`]),
  ];
  return parts.join(', ');
}

/** `connects to 10.3.0.116:80 ⇒ 172.17.0.6:80, accepted by nginx[20647]`. */
export function connectionRow(
  { server, behind, acceptor, openedMs }: OpenedConnection,
  fromMs: number,
  name: PeerNaming,
  paint: Paint,
): string {
  const to = behind === null ? '' : ` ⇒ ${name(behind)}`;
  const isThere = acceptor !== null && acceptor.why !== 'elsewhere';
  const by = isThere ? `  accepted by ${askerInPod(acceptor, paint)}` : '';
  const at = printElapsed(openedMs - fromMs).padStart(8);
  return `  ${paint.dim(at)}  connects to ${name(server)}${to}${by}`;
}

/** The share of queries whose process is known, and why the rest are not. */
export function attributionLine({ attributed, unknown }: AttributionCounts): string {
  const rest = Object.entries(unknown) as [WhyUnknown, number][];
  const missing = rest.reduce((sum, [, each]) => sum + each, 0);
  const all = attributed + missing;
  if (all === 0) return 'no queries, so no processes';
  const share = Math.floor((attributed / all) * 1000) / 10;
  const why = rest
    .toSorted(([, one], [, other]) => other - one)
    .map(([reason, each]) => `${each} ${reasons[reason]}`);
  const not = missing === 0 ? '' : `; without: ${why.join(', ')}`;
  return `process known for ${attributed} of ${count(all, 'query', 'queries')} (${share} %)${not}`;
}

/** The client and server processes as JSON fields, and where a translation leads. Empty without --process. */
export interface AskerDocuments {
  readonly asker?: Asker;
  readonly answerer?: Asker;
  readonly behind?: Peer;
}

export function askerDocuments({
  asker = null,
  answerer = null,
  behind = null,
}: Pick<SeenExchange, 'asker' | 'answerer' | 'behind'>): AskerDocuments {
  return {
    ...(asker !== null && { asker }),
    ...(answerer !== null && { answerer }),
    ...(behind !== null && { behind }),
  };
}

/** A packet comment for Wireshark. */
export function askerComment({
  asker = null,
  answerer = null,
}: Pick<SeenExchange, 'asker' | 'answerer'>): string {
  const plain: Paint = { strong: String, dim: String, good: String, warn: String, bad: String };
  const say = (what: string, who: Asker | null): readonly string[] => {
    if (who === null || who.why === 'elsewhere') return [];
    const details = askerDetails(who);
    return [`${what} ${askerText(who, plain)}${details === '' ? '' : `: ${details}`}`];
  };
  return [...say('asked by', asker), ...say('answered by', answerer)].join('\n');
}
