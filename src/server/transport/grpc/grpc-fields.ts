/** Builds the header block that starts a gRPC request (HPACK, RFC 7541). */
import { field, integer } from '../http2/request-fields.ts';

/** Entries in HPACK's static table (RFC 7541 appendix A). */
const AUTHORITY = 1;
const METHOD_POST = 3;
const PATH = 4;
const SCHEME_HTTP = 6;
const SCHEME_HTTPS = 7;
const CONTENT_TYPE = 31;

/**
 * Builds a gRPC request's header block. The server must not index any of its fields, because they may contain tokens,
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
    Buffer.of(0x80 | METHOD_POST, 0x80 | (parts.secure ? SCHEME_HTTPS : SCHEME_HTTP)),
    field(PATH, parts.path),
    field(AUTHORITY, parts.authority),
    field(CONTENT_TYPE, 'application/grpc'),
    named('te', 'trailers'),
    named('user-agent', 'ndots'),
    ...Object.entries(parts.metadata).map(([name, value]) => named(name, value)),
  ]);
}

/** Encodes a literal field with a literal name, never indexed (RFC 7541 section 6.2.3). */
export function named(name: string, value: string): Buffer {
  const text = Buffer.from(value, 'latin1');
  const label = Buffer.from(name, 'latin1');
  return Buffer.concat([
    Buffer.of(0x10),
    integer(label.length, 0x7f),
    label,
    integer(text.length, 0x7f),
    text,
  ]);
}
