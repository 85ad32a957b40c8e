/** Steps that contain other steps, which run in sequence, in parallel, repeatedly, or after a delay. */
import { required, time, whole, optional } from '../../../server/kube/manifests/yaml-shape.ts';
import type { StepKind } from './story-reading.ts';
import { steps } from './step-list.ts';
import { bareKind, kind, runSteps } from './step.ts';
import { pause } from '../pause.ts';

const wait = bareKind({
  help: 'waits',
  bare: time(),
  act: (ms) => pause(ms),
});

const together = bareKind({
  help: 'runs steps at the same time, with at most one lookup per pod',
  bare: steps,
  async act(list, run) {
    await Promise.all(list.map((step) => step.run(run)));
  },
});

const repeat = kind({
  help: 'repeats steps; the results are those of the last round',
  fields: {
    times: required(whole(1, 1000), 'number of rounds'),
    steps: required(steps, 'the steps'),
    every: optional(time(), 0, 'pause between rounds'),
  },
  async act({ times, steps: list, every }, run) {
    for (let count = 0; count < times; count++) {
      if (count > 0) await pause(every);
      await runSteps(list, run);
    }
  },
});

export const flowSteps: Readonly<Record<string, StepKind>> = { wait, together, repeat };
