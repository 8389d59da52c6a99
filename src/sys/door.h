/* SPDX-License-Identifier: MIT */
#ifndef RS_DOOR_H
#define RS_DOOR_H

/* A socket by which other processes of the same user reach this one: see door.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RS_DOOR_PATH = 128 };

struct rs_door {
        int fd;     /* listens; -1: closed */
        int folder; /* in which it lies */
        uint64_t device, inode;
        char path[RS_DOOR_PATH];
};

/* 0, or negative with why in one line: the folder is not private to this user, and so on. Sockets that processes have
 * left behind are swept away. */
int rs_door_open(struct rs_door *d, char *ret_why, size_t size);
void rs_door_close(struct rs_door *d);  /* and its name is gone */
void rs_door_forget(struct rs_door *d); /* in a forked child: it is the parent's */

/* One who has come, non-blocking, whom rs_spare_close() closes; negative: -EAGAIN and what accept(2) gives. ret_spare:
 * there was no descriptor but in reserve. */
int rs_door_accept(const struct rs_door *d, bool *ret_spare);

/* Whether it is a process of the user whose rights this process has now, or root's. */
bool rs_door_admits(int fd);

/* Some more bytes than before fit into what has been sent and not read. */
void rs_door_more_room(int fd);

/* Until fd has one of the events (POLLIN, POLLOUT) or the other end has hung up, at most until `deadline`: 1; 0 once
 * that has passed; -ECANCELED when `stop` is readable. fd -1: none. */
int rs_door_wait(int fd, short events, int stop, int64_t deadline);

#endif
