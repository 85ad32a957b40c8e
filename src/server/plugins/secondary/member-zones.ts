/** The zones listed in catalogs: which of them are followed, and for which catalog. */
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { PackedZone } from '../../zone/packed-zone.ts';
import type { ZonePublisher } from '../../zone/zone-publisher.ts';
import { readCatalog, type CatalogMember } from './catalog.ts';
import type { FollowedZone } from './followed-zone.ts';
import { isWithin } from '../../wire/within-zone.ts';

/** Milliseconds between starting two zones, so that a primary does not get thousands of requests at once. */
const START_EVERY_MS = 5;

export interface MemberZonesParts {
  readonly publisher: ZonePublisher;
  readonly clock: Clock;
  readonly log: Log;
  /** Zones in the Corefile, which catalogs cannot replace. */
  readonly fixed: ReadonlySet<string>;
  /** The zones that each catalog may list, which includes names below them; an empty list allows any zone. */
  readonly allowed: ReadonlyMap<string, readonly string[]>;
  readonly most: number;
  /** Creates a zone that is followed in the same way as the catalog itself, but does not start it. */
  readonly follow: (zone: string, catalog: string) => FollowedZone;
}

interface Member {
  readonly catalog: string;
  readonly id: string;
  readonly followed: FollowedZone;
}

/** Follows the zones that are listed in catalogs, and drops them when they no longer are. */
export class MemberZones {
  readonly #parts: MemberZonesParts;
  readonly #members = new Map<string, Member>();
  readonly #catalogs = new Map<string, readonly CatalogMember[]>();
  #startAt = 0;
  #stopped = false;

  constructor(parts: MemberZonesParts) {
    this.#parts = parts;
  }

  /**
   * Reads the zone as a catalog, if it is one for this directive.
   * @throws Error if it cannot be read
   */
  read(zone: string, packed: PackedZone): readonly CatalogMember[] | null {
    return this.#parts.allowed.has(zone) ? readCatalog(packed, this.#parts.most) : null;
  }

  apply(catalog: string, members: readonly CatalogMember[]): void {
    const { log, fixed } = this.#parts;
    this.#catalogs.set(catalog, members);
    const named = new Set<string>();
    let outside = 0;
    for (const member of members) {
      const { zone } = member;
      if (!this.#mayName(catalog, zone)) {
        outside++;
        continue;
      }
      named.add(zone);
      if (fixed.has(zone)) this.#clash(zone, catalog);
      else this.#take(member, catalog);
    }
    /** Zones that are free for other catalogs, either a particular one or any that lists them (null). */
    const free = new Map<string, string | null>();
    for (const { zone, goesTo } of members)
      if (goesTo !== null && this.#members.get(zone)?.catalog === catalog) free.set(zone, goesTo);
    for (const [zone, member] of this.#members) {
      if (member.catalog !== catalog || named.has(zone)) continue;
      this.#end(zone, member);
      free.set(zone, null);
      log.info(`Removed catalog member zone ${zone} from catalog ${catalog}`);
    }
    this.#handOver(catalog, free);
    if (outside > 0)
      log.warning(
        `Skipped ${outside} member zones from catalog ${catalog}: outside configured member zones`,
      );
    log.info(`Parsed catalog zone ${catalog} with ${members.length} member zones`);
  }

  /** Returns a zone that was added by a catalog, or undefined. */
  get(zone: string): FollowedZone | undefined {
    return this.#members.get(zone)?.followed;
  }

  stop(): void {
    this.#stopped = true;
    for (const { followed } of this.#members.values()) followed.stop();
  }

  #mayName(catalog: string, zone: string): boolean {
    const within = this.#parts.allowed.get(catalog) ?? [];
    return within.length === 0 || within.some((one) => isWithin(zone, one));
  }

  /** Uses the members that are already known, because a catalog that lists the zones may not change for a long time. */
  #handOver(from: string, free: Map<string, string | null>): void {
    if (free.size === 0) return;
    for (const [catalog, members] of this.#catalogs) {
      if (catalog === from) continue;
      for (const member of members) {
        const { zone } = member;
        const goesTo = free.get(zone);
        if (goesTo === undefined || (goesTo !== null && goesTo !== catalog)) continue;
        if (this.#parts.fixed.has(zone) || !this.#mayName(catalog, zone)) continue;
        free.delete(zone);
        this.#take(member, catalog);
      }
    }
  }

  #take(member: CatalogMember, catalog: string): void {
    const { log } = this.#parts;
    const { zone, id } = member;
    const before = this.#members.get(zone);
    if (before === undefined) {
      this.#begin(member, catalog);
      log.info(`Added catalog member zone ${zone} from catalog ${catalog}`);
    } else if (before.catalog !== catalog) {
      const source = this.#catalogs.get(before.catalog)?.find((one) => one.zone === zone);
      if (source?.goesTo !== catalog) return this.#clash(zone, catalog);
      // A member keeps its state only if its label stays the same (RFC 9432 section 4.4.1).
      const kept = before.id === source.id && source.id === id;
      if (kept) before.followed.stop();
      else this.#end(zone, before);
      this.#begin(member, catalog);
      log.info(`Moved catalog member zone ${zone} from ${before.catalog} to ${catalog}`);
    } else if (before.id !== id) {
      this.#end(zone, before);
      this.#begin(member, catalog);
      log.info(
        `Reset catalog member zone ${zone} from ${catalog} after member ID changed from ${before.id} to ${id}`,
      );
    }
  }

  #clash(zone: string, catalog: string): void {
    this.#parts.log.warning(
      `Skipping catalog member zone ${zone} from ${catalog}: zone already exists`,
    );
  }

  #begin({ zone, id }: CatalogMember, catalog: string): void {
    const { publisher, follow, clock } = this.#parts;
    if (!publisher.has(zone)) publisher.put(zone, null);
    const followed = follow(zone, catalog);
    this.#members.set(zone, { catalog, id, followed });
    const now = clock.now();
    this.#startAt = Math.max(now, this.#startAt) + START_EVERY_MS;
    clock.after(this.#startAt - now, () => {
      if (!this.#stopped && this.#members.get(zone)?.followed === followed) followed.start();
    });
  }

  #end(zone: string, { followed }: Member): void {
    followed.stop();
    this.#members.delete(zone);
    this.#parts.publisher.remove(zone);
  }
}
