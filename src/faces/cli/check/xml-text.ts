import { visible } from '../../../server/base/visible.ts';

/** A text as it may stand in XML, between tags and in attributes: for JUnit reports. */
export function xmlText(text: string): string {
  // XML has no way to write most control characters.
  return visible(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
