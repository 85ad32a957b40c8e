import { visible } from '../../../server/base/visible.ts';

/** Escapes text for XML content and attributes (JUnit reports). */
export function xmlText(text: string): string {
  // XML cannot represent most control characters.
  return visible(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
