/** The playground's worker, with all engines. */
import { serveEngines } from './engine-server.ts';

serveEngines({
  trace: async () => (await import('./engines/trace-engine.ts')).runTrace,
  lint: async () => (await import('./engines/lint-engine.ts')).runLint,
  diff: async () => (await import('./engines/diff-engine.ts')).runDiff,
  doctor: async () => (await import('./engines/doctor-engine.ts')).runDoctor,
});
