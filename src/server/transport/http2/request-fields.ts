/**
 * Header blocks for the requests of DNS and gRPC clients (HPACK, RFC 7541). Values are literals, and nothing is indexed.
 */

const NAME = {
  AUTHORITY: 1,
  GET: 2,
  POST: 3,
  PATH: 4,
  HTTP: 6,
  HTTPS: 7,
  ACCEPT: 19,
  CONTENT_LENGTH: 28,
  CONTENT_TYPE: 31,
} as const;

/**
 * The start of the block for a DNS query. Only the end differs between requests to the same upstream. It is completed
 * by `contentLength` (POST) or `pathAndAccept` (GET), because pseudo-headers must come first.
 */
export function requestFields(
  method: 'GET' | 'POST',
  authority: string,
  path: string,
  mediaType: string,
): Buffer {
  const post = method === 'POST';
  return Buffer.concat([
    Buffer.of(0x80 | (post ? NAME.POST : NAME.GET), 0x80 | NAME.HTTPS),
    field(NAME.AUTHORITY, authority),
    ...(post ? [field(NAME.PATH, path)] : []),
    ...(post ? [field(NAME.ACCEPT, mediaType), field(NAME.CONTENT_TYPE, mediaType)] : []),
  ]);
}

/** The end of a POST's block. */
export function contentLength(length: number): Buffer {
  return field(NAME.CONTENT_LENGTH, String(length));
}

/** The end of a GET's block. */
export function pathAndAccept(path: string, mediaType: string): Buffer {
  return Buffer.concat([field(NAME.PATH, path), field(NAME.ACCEPT, mediaType)]);
}

/**
 * Builds the block of a gRPC request. The server must not index any of its fields, because they may contain tokens,
 * which change and are secret.
 */
export function grpcFields(parts: {
  readonly secure: boolean;
  readonly authority: string;
  readonly path: string;
  /** Names in lower case. */
  readonly metadata: Readonly<Record<string, string>>;
}): Buffer {
  return Buffer.concat([
    Buffer.of(0x80 | NAME.POST, 0x80 | (parts.secure ? NAME.HTTPS : NAME.HTTP)),
    field(NAME.PATH, parts.path),
    field(NAME.AUTHORITY, parts.authority),
    field(NAME.CONTENT_TYPE, 'application/grpc'),
    named('te', 'trailers'),
    named('user-agent', 'ndots'),
    ...Object.entries(parts.metadata).map(([name, value]) => named(name, value)),
  ]);
}

/** Encodes a literal field with a literal name, never indexed (RFC 7541 section 6.2.3). */
export function named(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.of(0x10), literal(name), literal(value)]);
}

/** Encodes a literal field without indexing (RFC 7541 section 6.2.2). `name` is an entry in the static table. */
function field(name: number, value: string): Buffer {
  return Buffer.concat([integer(name, 0x0f), literal(value)]);
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([integer(bytes.length, 0x7f), bytes]);
}

/** Encodes an integer in the low bits given by `mask` (RFC 7541 section 5.1). */
function integer(value: number, mask: number): Buffer {
  if (value < mask) return Buffer.of(value);
  const out = [mask];
  for (value -= mask; value >= 0x80; value >>= 7) out.push(0x80 | (value & 0x7f));
  return Buffer.from([...out, value]);
}
