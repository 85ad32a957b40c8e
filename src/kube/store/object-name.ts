/** Whether the API takes it for the name of an object: a DNS subdomain (RFC 1123), at most 253 letters. */
export function isObjectName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(text);
}
