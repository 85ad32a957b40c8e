/** The console's worker, with only the engines that its tools need. */
import { serveEngines } from '../playground/engine-server.ts';

serveEngines({
  trace: async () => (await import('../playground/engines/trace-engine.ts')).runTrace,
  diff: async () => (await import('../playground/engines/diff-engine.ts')).runDiff,
  lint: async () => (await import('../playground/engines/lint-engine.ts')).runLint,
});
