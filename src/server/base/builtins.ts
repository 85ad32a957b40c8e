/**
 * Built-in modules that cost megabytes of memory, loaded on first use. They are not imported because `import` touches
 * every export. For `node:http`, this would load all of fetch, about 10 MiB.
 */
export const builtins = {
  crypto: (): typeof import('node:crypto') => process.getBuiltinModule('node:crypto'),
  http: (): typeof import('node:http') => process.getBuiltinModule('node:http'),
  https: (): typeof import('node:https') => process.getBuiltinModule('node:https'),
  http2: (): typeof import('node:http2') => process.getBuiltinModule('node:http2'),
  tls: (): typeof import('node:tls') => process.getBuiltinModule('node:tls'),
  zlib: (): typeof import('node:zlib') => process.getBuiltinModule('node:zlib'),
  dgram: (): typeof import('node:dgram') => process.getBuiltinModule('node:dgram'),
  /** Intended for modules such as `random.ts` that are also imported by code without I/O. */
  files: (): typeof import('node:fs') => process.getBuiltinModule('node:fs'),
  filePromises: (): typeof import('node:fs/promises') =>
    process.getBuiltinModule('node:fs/promises'),
  childProcess: (): typeof import('node:child_process') =>
    process.getBuiltinModule('node:child_process'),
} as const;
