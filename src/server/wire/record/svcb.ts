import { TYPE } from '../iana.ts';
import { recordKind, type RecordKind } from './kind.ts';
import { serviceBinding, type ServiceBinding } from './shape.ts';

/** Service binding (RFC 9460, section 2). */
export const svcb: RecordKind<ServiceBinding> = recordKind('SVCB', TYPE.SVCB, serviceBinding);
