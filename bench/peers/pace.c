/*
 * Queries a server on 127.0.0.1 at a steady rate, regardless of replies (open loop), and prints reply latencies. They
 * are counted from the time each query was due, so that stalls of the server show up.
 *
 * usage: pace PORT RATE SECONDS FILE    FILE: one "NAME TYPENUMBER" per line
 * prints one line of JSON: sent, received, errors (rcode other than 0 and 3), p50, p99, p999, max (microseconds)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { NAMES = 20000, IDS = 65536, BUCKETS = 2000000 };

static unsigned char packets[NAMES][280];
static int lengths[NAMES];
static int64_t due_at[IDS];
static uint32_t histogram[BUCKETS];

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int read_names(const char *path) {
  FILE *file = fopen(path, "r");
  char name[256];
  int type, count = 0;
  if (!file) return 0;
  while (count < NAMES && fscanf(file, "%255s %d", name, &type) == 2) {
    unsigned char *p = packets[count];
    memset(p, 0, 12);
    p[2] = 1;
    p[5] = 1;
    int at = 12;
    for (char *label = strtok(name, "."); label; label = strtok(NULL, ".")) {
      int n = strlen(label);
      p[at++] = n;
      memcpy(p + at, label, n);
      at += n;
    }
    p[at++] = 0;
    p[at++] = type >> 8;
    p[at++] = type & 255;
    p[at++] = 0;
    p[at++] = 1;
    lengths[count++] = at;
  }
  fclose(file);
  return count;
}

static double percentile(uint64_t total, double share) {
  uint64_t want = (uint64_t)(total * share), seen = 0;
  for (int i = 0; i < BUCKETS; i++) {
    seen += histogram[i];
    if (seen >= want) return i;
  }
  return BUCKETS;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  int rate = atoi(argv[2]), names = read_names(argv[4]);
  int64_t total = (int64_t)rate * atoi(argv[3]);
  if (names == 0) return 2;
  int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 8 << 20;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, (struct sockaddr *)&there, sizeof there) != 0) return 1;
  int64_t begin = now_ns(), gap = 1000000000LL / rate, sent = 0, received = 0, errors = 0, max = 0;
  for (;;) {
    int64_t now = now_ns();
    while (sent < total && begin + sent * gap <= now) {
      int i = sent % names, id = sent % IDS;
      packets[i][0] = id >> 8;
      packets[i][1] = id & 255;
      due_at[id] = begin + sent * gap;
      send(fd, packets[i], lengths[i], 0);
      sent++;
    }
    unsigned char reply[4096];
    ssize_t n;
    while ((n = recv(fd, reply, sizeof reply, MSG_DONTWAIT)) >= 12) {
      int id = reply[0] << 8 | reply[1], rcode = reply[3] & 15;
      if (due_at[id] == 0) continue;
      int64_t took = (now_ns() - due_at[id]) / 1000;
      due_at[id] = 0;
      if (took < 0) took = 0;
      if (took > max) max = took;
      histogram[took < BUCKETS ? took : BUCKETS - 1]++;
      received++;
      if (rcode != 0 && rcode != 3) errors++;
    }
    if (received == sent && sent == total) break;
    if (sent == total && now > begin + total * gap + 2000000000LL) break;
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    // Wait for a reply, or until the next query is due.
    int64_t left = sent < total ? begin + sent * gap - now_ns() : 1000000;
    struct timespec until = {0, left < 0 ? 0 : left > 1000000 ? 1000000 : left};
    ppoll(&wait, 1, &until, NULL);
  }
  printf("{\"sent\":%lld,\"received\":%lld,\"errors\":%lld,\"p50\":%.0f,\"p99\":%.0f,\"p999\":%.0f,\"max\":%lld}\n", (long long)sent,
         (long long)received, (long long)errors, percentile(received, 0.5), percentile(received, 0.99), percentile(received, 0.999), (long long)max);
  return 0;
}
