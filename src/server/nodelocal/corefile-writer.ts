/** Writes the node's Corefile from its template, and again when an input changes. */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { errorCode } from '../base/error-code.ts';
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { emptyConfig, readKubeDnsConfig } from './kube-dns-config.ts';
import { renderTemplate, type TemplateValues } from './template.ts';
import { whyFailed } from '../base/why-failed.ts';

/** The directory of the ConfigMap `kube-dns` in NodeLocal DNSCache, by default. */
const KUBE_DNS_FOLDER = '/etc/kube-dns';

/** The sources of the Corefile. */
export interface CorefileWriterParts {
  /** The template (`-basecorefile`), or the cluster's Corefile (`-from-corefile`). */
  readonly base: string;
  /**
   * Derives the template from the content of `base`.
   * @throws Problem
   */
  readonly derive: ((text: string) => string) | null;
  /** The path of the written Corefile. */
  readonly corefile: string;
  /** The directory of the ConfigMap `kube-dns`; empty: the usual one, if it exists. */
  readonly kubeDnsFolder: string;
  readonly values: Omit<TemplateValues, 'config'>;
  readonly log: Log;
  /** A source has a mistake: the Corefile stays unchanged. */
  readonly onError: () => void;
}

/** Writes the Corefile. True if it has changed. */
export class CorefileWriter {
  readonly #parts: CorefileWriterParts;
  #text: string | null = null;
  #mistake = '';

  constructor(parts: CorefileWriterParts) {
    this.#parts = parts;
  }

  /**
   * Writes it for the first time. After a mistake, an existing one is served. @throws Problem if
   * there is none
   */
  begin(): void {
    try {
      this.#make();
    } catch (error) {
      if (error instanceof Problem && !this.#isThere()) throw error;
      this.#fail(error);
    }
  }

  /**
   * Writes the Corefile from the current sources.
   * @returns whether it has changed. Without a template nothing is written: the Corefile is used
   * unchanged.
   */
  update(): boolean {
    try {
      return this.#make();
    } catch (error) {
      return this.#fail(error);
    }
  }

  #make(): boolean {
    const { base, corefile, log } = this.#parts;
    let text: string;
    let config = emptyConfig;
    try {
      config = this.#config();
      text = this.#render(config);
    } catch (error) {
      throw told(`Failed to make ${corefile} of ${base}: `, error);
    }
    try {
      if (text !== this.#text) replace(corefile, text);
    } catch (error) {
      throw told(`Failed to write config file ${corefile} - `, error);
    }
    this.#mistake = '';
    if (text === this.#text) return false;
    this.#text = text;
    const upstreams = config.upstreamNameservers.join(' ') || '/etc/resolv.conf';
    log.info(
      `Updated Corefile with ${config.stubDomains.size} custom stubdomains and upstream servers ${upstreams}`,
    );
    log.info(`Using config file:\n${text}`);
    return true;
  }

  /** The next try may come in a few seconds: each fault is reported once. */
  #fail(error: unknown): false {
    const mistake = error instanceof Problem ? error.print() : (error as Error).message;
    if (this.#mistake !== mistake) {
      this.#parts.onError();
      this.#parts.log.error(mistake);
    }
    this.#mistake = mistake;
    return false;
  }

  /** True if a Corefile is there that says anything. */
  #isThere(): boolean {
    const { corefile } = this.#parts;
    return existsSync(corefile) && !isEmpty(readFileText(corefile, FILE_MAX.corefile));
  }

  #config(): typeof emptyConfig {
    const { kubeDnsFolder } = this.#parts;
    const folder = kubeDnsFolder === '' ? KUBE_DNS_FOLDER : kubeDnsFolder;
    return existsSync(folder) ? readKubeDnsConfig(folder) : emptyConfig;
  }

  #render(config: typeof emptyConfig): string {
    const { base, derive, values } = this.#parts;
    const text = readFileText(base, FILE_MAX.corefile);
    const made = renderTemplate(derive === null ? text : derive(text), { ...values, config });
    // Served, it would stand for CoreDNS's default: every name, at every address.
    if (isEmpty(made)) throw nothingToServe();
    return made;
  }
}

/** True if there are but blanks and comments. */
function isEmpty(text: string): boolean {
  return text.split('\n').every((line) => /^\s*(?:#|$)/.test(line));
}

function nothingToServe(): Problem {
  return new Problem({
    code: 'nothing-to-serve',
    text: 'it holds no server block',
    hint: 'The node would have nothing to serve.',
    remedy:
      'docs/node-cache.md has a template; -from-corefile derives one from the cluster’s Corefile.',
  });
}

/**
 * The errors of a process that may not create a file beside the other one, or not replace it
 * because it is a mount.
 */
const ONLY_IN_PLACE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EXDEV']);

/**
 * Replaces the content of a file. If the disk is full the file stays unchanged, because half of a
 * Corefile has another meaning.
 */
function replace(path: string, text: string): void {
  const beside = `${path}.new`;
  try {
    writeFileSync(beside, text);
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true });
    if (!ONLY_IN_PLACE.has(errorCode(error))) throw error;
    writeFileSync(path, text);
  }
}

/** An error with a prefix that says what failed. */
function told(what: string, error: unknown): Error {
  if (error instanceof Problem) return error.with({ text: `${what}${error.message}` });
  return new Error(`${what}${whyFailed(error)}`);
}
