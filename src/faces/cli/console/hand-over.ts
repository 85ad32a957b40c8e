/** Exports what a page shows as packets, findings, or an equivalent command. */
import { Problem } from '../../../server/base/problem.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import { usualPorts } from '../../../tools/capture/read/reading.ts';
import type { LiveModel } from '../../../tools/watch/live-model.ts';
import type { PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import { equivalentWords, printCommand, type CommandSource } from '../top/equivalent-command.ts';
import { whyNoPackets, writeSelectedPackets } from './selected-packets.ts';

/** The exports available for a selection, as plain data for the page. */
export interface HandOverView {
  /** The command that shows the same lookups in a terminal. */
  readonly command: string;
  /** Why packets are not available, as a message. Empty if they are. */
  readonly noPackets: string;
}

export class HandOver {
  readonly #options: CommandSource;
  readonly #model: LiveModel;
  readonly #privacy: PrivacyLevel;

  constructor(options: CommandSource, model: LiveModel, privacy: PrivacyLevel) {
    this.#options = options;
    this.#model = model;
    this.#privacy = privacy;
  }

  async view(filters: readonly GivenFilter[]): Promise<HandOverView> {
    const words = equivalentWords({ view: 'lookups', filters, item: null }, this.#options);
    return { command: printCommand('ndots', words), noPackets: await this.#whyNoPackets() };
  }

  /** @throws Problem */
  async packets(
    filters: readonly GivenFilter[],
    signal: AbortSignal,
    write: (bytes: Uint8Array) => Promise<void>,
  ): Promise<void> {
    const why = await this.#whyNoPackets();
    if (why !== '') throw new Problem({ code: 'no-packets', text: why });
    const { nowMs, limits, parties } = this.#model;
    await writeSelectedPackets(
      {
        file: this.#options.files[0]!,
        ports: this.#options.ports ?? usualPorts,
        filters,
        ...{ fromMs: nowMs - limits.windowMs, toMs: nowMs, parties, signal },
        findings: this.#model.view({ view: 'findings', most: limits.findings }).rows,
      },
      write,
    );
  }

  async #whyNoPackets(): Promise<string> {
    const { files } = this.#options;
    const [file] = files;
    if (this.#privacy !== 'full')
      return `Packets contain client addresses, which --privacy ${this.#privacy} hides.`;
    if (file === undefined || file === '-')
      return 'The console does not store packets from live traffic. The command below, with --write FILE, records packets from now on.';
    if (files.length > 1)
      return 'Packets from several files cannot be joined. Use the command below.';
    return (await whyNoPackets(file)) ?? '';
  }
}
