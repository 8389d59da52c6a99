/* SPDX-License-Identifier: MIT */
#ifndef RAW_H
#define RAW_H

/* What the bare servers share: the command line, the listening socket, and what sink and source count. */

#include <stddef.h>
#include <stdint.h>

enum raw_mode { RAW_ECHO, RAW_SINK, RAW_SOURCE };

enum { RAW_LARGE = 65536, RAW_CONNECTIONS = 20000 };

#define RAW_ALL (UINT64_C(1) << 30) /* bytes that source sends */

struct raw {
        enum raw_mode mode;
        size_t size;  /* of a buffer */
        int listener; /* does not block */
};

/* Reads the command line, echo|sink|source SIZE, listens, and prints the port. Ends the program where it fails. */
void raw_begin(struct raw *r, int argc, char **argv);

/* A socket that listens and does not block; prints its port. */
int raw_listen(void);

/* Ends the program with errno's message. */
_Noreturn void raw_die(const char *what);

/* What every connection is given. */
void raw_no_delay(int fd);

#endif
