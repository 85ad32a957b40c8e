/** A thread that reads one zone file and then ends, which releases all memory that was used for reading. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../base/clock.ts';
import { useHashKey } from '../base/hash.ts';
import { collectMemory } from '../runtime/memory-policy.ts';
import { printBytes } from '../base/limits.ts';
import { Problem } from '../base/problem.ts';
import { readZoneFile, ZoneTooLarge } from './zone-file.ts';
import type { ZoneJob, ZoneThreadResult } from './load-zone.ts';
import { ReadingProgress } from './zone-progress.ts';

const { path, origin, unless, share, bytes, progress, hashKey } = workerData as ZoneJob;
useHashKey(hashKey);
try {
  const { packed, problems, warnings, digest, included } = await readZoneFile(
    path,
    origin,
    systemClock,
    unless,
    { share, bytes, progress: new ReadingProgress(progress) },
    collectMemory,
  );
  const plain = (list: readonly Problem[]): object[] => list.map(({ parts }) => parts);
  tell({
    packed,
    problems: plain(problems),
    warnings: plain(warnings),
    digest,
    included,
  } as ZoneThreadResult);
} catch (error) {
  if (error instanceof Problem)
    tell({ packed: null, problems: [error.parts], warnings: [], digest: '', included: [] });
  else if (error instanceof ZoneTooLarge) {
    const message = `reading it needs more memory than available, which is enough for ${printBytes(bytes)} including $INCLUDE files`;
    tell({ code: 'EFBIG', message, included: error.included });
  } else {
    const { code, message } = error as NodeJS.ErrnoException;
    tell({ code: code ?? '', message, included: [] });
  }
}

function tell(result: ZoneThreadResult): void {
  parentPort!.postMessage(result);
}
