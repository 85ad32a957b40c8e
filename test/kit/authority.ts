/** The certificate authority of `ndots webhook`, for the API servers and collectors of tests. */
export { Authority, type PemIdentity } from '../../src/addons/webhook/certificates.ts';
