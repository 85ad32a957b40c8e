/** gRPC lookups for records other than addresses. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { percent, share } from '../texts.ts';
import { MIN_QUERIES } from '../thresholds/evidence.ts';
import { MIN_GRPC_QUERIES, MIN_GRPC_SHARE } from '../thresholds/search.ts';

export const grpcLookups: FindingKind = {
  code: 'ND2005',
  title: 'gRPC clients query service configurations that do not exist',
  name: 'gRPC’s extra queries',
  inCapture({ serviceConfigs: { asked, found }, total }) {
    if (total.asked < MIN_QUERIES) return unknown('too few queries');
    if (asked < MIN_GRPC_QUERIES || asked < MIN_GRPC_SHARE * total.asked || found > 0)
      return excluded(
        `${percent(asked, total.asked)} of the queries are for gRPC service configurations`,
      );
    return {
      // They only cost extra queries. No lookup fails or waits.
      severity: 'info',
      confidence: 1,
      seen: [
        `${share(asked, total.asked)} queries were for _grpc_config (TXT) and _grpclb._tcp (SRV), none of which exists.`,
      ],
      why: 'For each name, the DNS resolver in gRPC libraries also queries a service configuration and load balancers, with the whole search path. These records are hardly ever published.',
      fix: [
        'In Go, use grpc.WithDisableServiceConfig(). In C++, Python, Ruby and others, set the channel argument grpc.service_config_disable_resolution.',
        'To skip the search path, end names with a dot, as in dns:///orders.shop.svc.cluster.local.:443.',
      ],
      prove: 'ndots capture FILE --name "_grpc*"',
      disproved: '',
    };
  },
};
