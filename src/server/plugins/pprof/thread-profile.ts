/** Profiles the current thread with the runtime's profiler. */
import type { HeapProfiler, Profiler, Session } from 'node:inspector';

/** The kind of profile, which is either CPU time or allocated memory that is still in use. */
export type ProfileKind = 'profile' | 'heap';

/** A thread's profile in DevTools format (`.cpuprofile`, `.heapprofile`). */
export type ThreadProfile =
  | { readonly kind: 'profile'; readonly profile: Profiler.Profile }
  | { readonly kind: 'heap'; readonly profile: HeapProfiler.SamplingHeapProfile };

/** Microseconds between two samples, which is a hundred samples per second as in Go. */
export const INTERVAL_US = 10_000;
/** Bytes between two sampled allocations. */
export const INTERVAL_BYTES = 32_768;

/**
 * Starts profiling this thread.
 * @returns a function that stops and returns the result
 */
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
