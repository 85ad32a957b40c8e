/**
 * Returns true if the API accepts the text as an object's name, which is a DNS subdomain (RFC 1123) of at most 253
 * characters.
 */
export function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text);
}
