/** Builds a Dockerfile's image for the tests in one suite and removes it afterwards. */
import { spawnSync } from 'node:child_process';
import { after, before, type TestContext } from 'node:test';
import type { EmulatedCpu } from './emulation.ts';
import { Image, NoNetwork } from './image.ts';

/**
 * Call it inside `describe`.
 * @param files the image's files, by path
 * @returns a function that gives a test the image of the last stage, or of the stage with that name. If the registries
 * are unreachable, it returns null and skips the test.
 */
export function imageForTests(
  dockerfile: string,
  files: Readonly<Record<string, string>>,
  emulated: EmulatedCpu | null = null,
): (t: TestContext, stage?: string) => Image | null {
  let image: Image | null = null;
  before(async () => {
    try {
      image = await Image.build(dockerfile, emulated);
    } catch (error) {
      if (!(error instanceof NoNetwork)) throw error;
    }
    for (const [path, text] of Object.entries(files)) image?.put(path, text);
  });
  after(() => image?.close());
  return (t, stage) => {
    if (stage !== undefined) image?.use(stage);
    if (image === null) t.skip('the registries cannot be reached');
    return image;
  };
}

/** Runs a program to completion. Returns its exit code, and its standard output followed by its standard error. */
export function ended(
  [program = '', ...rest]: readonly string[],
  timeout: number,
): { readonly code: number | null; readonly text: string } {
  const options = {
    encoding: 'utf8',
    timeout,
    // runc forwards other signals and waits for the container.
    killSignal: 'SIGKILL',
    maxBuffer: 1 << 28,
  } as const;
  const { status, stdout, stderr } = spawnSync(program, rest, options);
  return { code: status, text: stdout + stderr };
}
