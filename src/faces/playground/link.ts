/** Links to the playground with its input: for pages of the documentation and for the console. */
import { printHash } from '../web/hash-state.ts';

/**
 * The input of each page of the playground; a missing field has the value of the page's example.
 */
export interface PlaygroundInputs {
  readonly lookup: {
    readonly name?: string;
    readonly resolv?: string;
    /** The text of an answers file. */
    readonly answers?: string;
    /** `no`: the example cluster answers nothing. */
    readonly cluster?: 'yes' | 'no';
    readonly clients?: 'four' | 'all';
    /** `A`, `AAAA`; both without it. */
    readonly type?: 'A' | 'AAAA';
  };
  readonly corefile: { readonly corefile?: string };
  readonly diff: { readonly before?: string; readonly after?: string };
  readonly capture: Readonly<Record<string, never>>;
}

/**
 * The address that opens a page of the playground with this input.
 * @param base where the playground is: `https://example.com/playground/`
 */
export function playgroundLink<Page extends keyof PlaygroundInputs>(
  base: string,
  page: Page,
  input: PlaygroundInputs[Page],
): string {
  const parameters = new Map(Object.entries(input as Readonly<Record<string, string>>));
  return `${base}${printHash({ page, parameters })}`;
}
