/* Calls libevent's evdns_getaddrinfo the way a program does: evdns NAME FAMILY(0|4|6) COUNT. Prints one line of JSON per lookup. */
#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

struct lookup {
  struct event_base *base;
  double start;
};

static void answered(int rc, struct evutil_addrinfo *list, void *arg) {
  struct lookup *lookup = arg;
  printf("{\"rc\":%d,\"err\":\"%s\",\"ms\":%.1f,\"addrs\":[", rc, rc ? evutil_gai_strerror(rc) : "",
         now() - lookup->start);
  int printed = 0;
  for (struct evutil_addrinfo *one = list; one; one = one->ai_next) {
    char text[64];
    const void *address = one->ai_family == AF_INET ? (const void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr
                                                    : (const void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr;
    inet_ntop(one->ai_family, address, text, sizeof text);
    printf("%s\"%s\"", printed++ ? "," : "", text);
  }
  printf("]}\n");
  fflush(stdout);
  if (list) evutil_freeaddrinfo(list);
  event_base_loopbreak(lookup->base);
}

int main(int argc, char **argv) {
  int family = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 1;
  struct event_base *base = event_base_new();
  struct evdns_base *dns = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
  if (!dns) return 2;
  for (int i = 0; i < count; i++) {
    struct lookup lookup = {base, now()};
    struct evutil_addrinfo hints;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    if (evdns_getaddrinfo(dns, argv[1], NULL, &hints, answered, &lookup)) event_base_dispatch(base);
  }
  return 0;
}
