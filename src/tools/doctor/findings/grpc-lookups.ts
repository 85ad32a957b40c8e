/** Lookups of gRPC for other records than addresses. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { percent, share } from '../texts.ts';
import { COSTLY_SHARE, MIN_QUERIES } from '../thresholds/evidence.ts';
import { MIN_GRPC_QUERIES, MIN_GRPC_SHARE } from '../thresholds/search.ts';

/** gRPC asks for service configurations that do not exist. */
export const grpcLookups: FindingKind = {
  code: 'ND2005',
  title: 'gRPC clients ask for service configurations that do not exist',
  name: 'gRPC’s extra queries',
  inCapture({ serviceConfigs: { asked, found }, total }) {
    if (total.asked < MIN_QUERIES) return unknown('too few queries');
    if (asked < MIN_GRPC_QUERIES || asked < MIN_GRPC_SHARE * total.asked || found > 0)
      return excluded(`${percent(asked, total.asked)} of the queries are of this kind`);
    return {
      code: this.code,
      title: this.title,
      severity: asked >= COSTLY_SHARE * total.asked ? 'warning' : 'info',
      confidence: 1,
      seen: [
        `${share(asked, total.asked)} queries were for _grpc_config (TXT) and _grpclb._tcp (SRV), none of which exists.`,
      ],
      why: 'The DNS resolver in gRPC libraries also asks for a service configuration and for load balancers, for each name and with the whole search path. Hardly anybody publishes either.',
      fix: [
        'In Go, use grpc.WithDisableServiceConfig(); in C++, Python, Ruby …, set the channel argument grpc.service_config_disable_resolution.',
        'End names with a dot to skip the search path: dns:///orders.shop.svc.cluster.local.:443',
      ],
      prove: 'ndots capture FILE --name "_grpc*"',
      disproved: '',
      exchanges: [],
    };
  },
};
