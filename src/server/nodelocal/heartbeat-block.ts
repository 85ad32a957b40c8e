/** The server block that answers the heartbeat, alongside those in the Corefile and at the same addresses. */
import type { Corefile, ServerBlock } from '../corefile/corefile-tree.ts';
import { HEARTBEAT_ZONE } from './heartbeat.ts';

/**
 * Returns the text of the blocks to add. There is one for the addresses used in `bind`, and one for all addresses if
 * any blocks have no `bind`.
 */
export function heartbeatBlocks({ blocks }: Corefile, port: number): string {
  const here = blocks.filter(({ keys }) =>
    keys.some((key) => key.scheme === 'dns' && key.port === port),
  );
  const bound = here.map(bindLines);
  const everywhere = bound.some((lines) => lines.length === 0);
  const words = new Set(bound.flat());
  const bodies = [
    ...(words.size > 0 ? [`bind ${[...words].join(' ')}`] : []),
    ...(everywhere ? [''] : []),
  ];
  return bodies.map((bind) => `${HEARTBEAT_ZONE}:${port} {\n${bind}\nwhoami\n}\n`).join('');
}

function bindLines({ directives }: ServerBlock): readonly string[] {
  return directives
    .filter(({ name }) => name === 'bind')
    .flatMap(({ args }) => args.map(({ text }) => text));
}
