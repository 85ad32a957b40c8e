/** Writes a node's Corefile from its template, and rewrites it when an input changes. */
import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { errorCode } from '../base/error-code.ts';
import type { Log } from '../base/log.ts';
import { Problem } from '../base/problem.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { emptyConfig, readKubeDnsConfig } from './kube-dns-config.ts';
import { renderTemplate, type TemplateValues } from './template.ts';
import { whyFailed } from '../base/why-failed.ts';

/** NodeLocal DNSCache's default directory for the ConfigMap `kube-dns`. */
const KUBE_DNS_FOLDER = '/etc/kube-dns';

export interface CorefileWriterParts {
  /** The template (`-basecorefile`), or the cluster's Corefile (`-from-corefile`). */
  readonly base: string;
  /**
   * Derives the template from the contents of `base`.
   * @throws Problem
   */
  readonly derive: ((text: string) => string) | null;
  readonly corefile: string;
  /** Directory of the ConfigMap `kube-dns`. If empty, the default one is used if it exists. */
  readonly kubeDnsDirectory: string;
  readonly values: Omit<TemplateValues, 'config'>;
  readonly log: Log;
  /** Called if a source has an error, in which case the Corefile stays unchanged. */
  readonly onError: () => void;
}

export class CorefileWriter {
  readonly #parts: CorefileWriterParts;
  #text: string | null = null;
  #mistake = '';

  constructor(parts: CorefileWriterParts) {
    this.#parts = parts;
  }

  /**
   * Writes the Corefile for the first time. If there is an error, an existing one is served.
   * @throws Problem if there is none
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
   * Writes the Corefile from the current sources. If there is no template, nothing is written, and the Corefile is used
   * unchanged.
   * @returns true if it has changed
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

  /** Reports each fault only once, because the next attempt may follow within a few seconds. */
  #fail(error: unknown): false {
    const mistake = error instanceof Problem ? error.print() : (error as Error).message;
    if (this.#mistake !== mistake) {
      this.#parts.onError();
      this.#parts.log.error(mistake);
    }
    this.#mistake = mistake;
    return false;
  }

  /** Returns true if a Corefile exists and is not empty. */
  #isThere(): boolean {
    const { corefile } = this.#parts;
    return existsSync(corefile) && !isEmpty(readFileText(corefile, FILE_MAX.corefile));
  }

  #config(): typeof emptyConfig {
    const { kubeDnsDirectory } = this.#parts;
    const directory = kubeDnsDirectory === '' ? KUBE_DNS_FOLDER : kubeDnsDirectory;
    return existsSync(directory) ? readKubeDnsConfig(directory) : emptyConfig;
  }

  #render(config: typeof emptyConfig): string {
    const { base, derive, values } = this.#parts;
    const text = readFileText(base, FILE_MAX.corefile);
    const made = renderTemplate(derive === null ? text : derive(text), { ...values, config });
    // If this were served, it would mean CoreDNS's default: every name, at every address.
    if (isEmpty(made)) throw nothingToServe();
    return made;
  }
}

/** Returns true if the text consists only of blanks and comments. */
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
 * Errors for a process that cannot create a file next to the other one, or cannot replace that file because it is a
 * mount.
 */
const ONLY_IN_PLACE: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'EBUSY', 'EXDEV']);

/**
 * Replaces a file's contents. If the disk is full, the file stays unchanged, because half a Corefile has a different
 * meaning.
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

/** Returns an error with a prefix that describes the failed operation. */
function told(what: string, error: unknown): Error {
  if (error instanceof Problem) return error.with({ text: `${what}${error.message}` });
  return new Error(`${what}${whyFailed(error)}`);
}
