/** Metadata about a client's location and network. */
import type { City, NetworkRecord } from './database.ts';

/** Adds a location to the metadata. A missing value becomes Go's zero value, as in CoreDNS. */
export function noteCity(found: City, notes: Map<string, string>): void {
  const { city, country, continent, location, postal, subdivisions } = found;
  const regions = Array.isArray(subdivisions) ? subdivisions : [];
  const inUnion = country?.is_in_european_union === true;
  notes.set('geoip/city/name', text(city?.names?.['en']));
  notes.set('geoip/country/name', text(country?.names?.['en']));
  notes.set('geoip/country/code', text(country?.iso_code));
  notes.set('geoip/country/is_in_european_union', inUnion ? 'true' : 'false');
  notes.set('geoip/continent/name', text(continent?.names?.['en']));
  notes.set('geoip/continent/code', text(continent?.code));
  notes.set('geoip/subdivisions/code', regions.map((region) => text(region?.iso_code)).join(','));
  notes.set('geoip/latitude', text(location?.latitude));
  notes.set('geoip/longitude', text(location?.longitude));
  notes.set('geoip/timezone', text(location?.time_zone));
  notes.set('geoip/postalcode', text(postal?.code));
}

/** Adds a network's number and operator to the metadata. */
export function noteNetwork(found: NetworkRecord, notes: Map<string, string>): void {
  notes.set('geoip/asn/number', text(found.autonomous_system_number ?? 0));
  notes.set('geoip/asn/org', text(found.autonomous_system_organization));
}

/** Numbers of more than 32 bits are bigints, and a corrupt database can contain anything. */
function text(value: unknown): string {
  const plain = typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
  return plain ? String(value) : '';
}
