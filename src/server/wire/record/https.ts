import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { serviceBinding, type ServiceBinding } from './shape.ts';

/** Service binding for a web origin (RFC 9460, section 9). */
export const https: RecordKind<ServiceBinding> = recordKind('HTTPS', TYPE.HTTPS, serviceBinding);
