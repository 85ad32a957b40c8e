/** The worker of the console: the engines of its tools alone. */
import { serveEngines } from '../playground/engine-server.ts';

serveEngines({
  trace: async () => (await import('../playground/engines/trace-engine.ts')).runTrace,
  lint: async () => (await import('../playground/engines/lint-engine.ts')).runLint,
});
