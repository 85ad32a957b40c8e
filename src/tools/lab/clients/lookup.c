/* Calls getaddrinfo the way a program does: lookup NAME FAMILY(0|4|6) COUNT. Prints one line of JSON per lookup. */
#include <arpa/inet.h>
#include <netdb.h>
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

int main(int argc, char **argv) {
  int family = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 1;
  for (int i = 0; i < count; i++) {
    struct addrinfo hints, *list = NULL;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = family == 4 ? AF_INET : family == 6 ? AF_INET6 : AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    double start = now();
    int rc = getaddrinfo(argv[1], NULL, &hints, &list);
    printf("{\"rc\":%d,\"err\":\"%s\",\"ms\":%.1f,\"addrs\":[", rc, rc ? gai_strerror(rc) : "", now() - start);
    int printed = 0;
    for (struct addrinfo *one = rc ? NULL : list; one; one = one->ai_next) {
      char text[64];
      const void *address = one->ai_family == AF_INET
                                ? (const void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr
                                : (const void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr;
      inet_ntop(one->ai_family, address, text, sizeof text);
      printf("%s\"%s\"", printed++ ? "," : "", text);
    }
    printf("]}\n");
    fflush(stdout);
  }
  return 0;
}
