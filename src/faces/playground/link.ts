/** Builds links that open the playground with some input, for the documentation and the console. */
import { printHash } from '../web/hash-state.ts';

/** The input for each playground page. Missing fields default to the page's example. */
export interface PlaygroundInputs {
  readonly lookup: {
    readonly name?: string;
    readonly resolv?: string;
    readonly answers?: string;
    /** `no`: the example cluster does not answer. */
    readonly cluster?: 'yes' | 'no';
    readonly clients?: 'four' | 'all';
    /** The query type; absent: both. */
    readonly type?: 'A' | 'AAAA';
  };
  readonly corefile: { readonly corefile?: string };
  readonly diff: { readonly before?: string; readonly after?: string };
  readonly capture: Readonly<Record<string, never>>;
}

/** @param base the playground's address, such as `https://example.com/playground/` */
export function playgroundLink<Page extends keyof PlaygroundInputs>(
  base: string,
  page: Page,
  input: PlaygroundInputs[Page],
): string {
  const parameters = new Map(Object.entries(input as Readonly<Record<string, string>>));
  return `${base}${printHash({ page, parameters })}`;
}
