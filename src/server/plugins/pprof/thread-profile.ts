/** A profile of the thread that this runs on, by the runtime's own profiler. */
import type { HeapProfiler, Profiler, Session } from 'node:inspector';

/** The kind of a profile: CPU time, or memory that was allocated and is still in use. */
export type ProfileKind = 'profile' | 'heap';

/** The profile of one thread, as DevTools reads it (`.cpuprofile`, `.heapprofile`). */
export type ThreadProfile =
  | { readonly kind: 'profile'; readonly profile: Profiler.Profile }
  | { readonly kind: 'heap'; readonly profile: HeapProfiler.SamplingHeapProfile };

/** Microseconds between two looks at what the thread does: Go's hundred a second. */
export const INTERVAL_US = 10_000;
/** Bytes between two sampled allocations. */
export const INTERVAL_BYTES = 32_768;

/** Begins a profile of this thread. @returns ends it, and gives it */
export async function beginProfile(kind: ProfileKind): Promise<() => Promise<ThreadProfile>> {
  const { Session: Made } = process.getBuiltinModule('node:inspector');
  const session = new Made();
  session.connect();
  const post = poster(session);
  if (kind === 'profile') {
    await post('Profiler.enable');
    await post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
    await post('Profiler.start');
  } else {
    await post('HeapProfiler.enable');
    await post('HeapProfiler.startSampling', { samplingInterval: INTERVAL_BYTES });
  }
  return async () => {
    try {
      const ended = await post(kind === 'profile' ? 'Profiler.stop' : 'HeapProfiler.stopSampling');
      return { kind, profile: (ended as { profile: never }).profile };
    } finally {
      session.disconnect();
    }
  };
}

function poster(session: Session): (method: string, params?: object) => Promise<unknown> {
  return (method, params = {}) =>
    new Promise((resolve, reject) => {
      session.post(method, params, (error, result) => {
        if (error === null) resolve(result);
        else reject(error);
      });
    });
}
