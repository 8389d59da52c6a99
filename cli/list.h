/* SPDX-License-Identifier: MIT */
#ifndef CLI_LIST_H
#define CLI_LIST_H

/* A list in a file or on stdin, read line by line as it is needed. Blank lines and lines that begin with # are skipped,
 * blanks around a line and the CR of CRLF are cut off, a UTF-8 byte order mark at the start is ignored. */

#include <resha/base.h>

struct list;

/* path "-": stdin. 0; negative with a record that names the file. [any-thread] */
int list_open(const char *path, struct list **ret_list);
void list_free(struct list *l);
void list_freep(struct list **l);

/* The next entry: 1, with its bytes (valid until the next call, a 0 behind them) and its line number; 0 at the end;
 * -EMSGSIZE for a line over 64 KiB, which is skipped: go on; other negative codes with a record. Without `wait` -EAGAIN
 * where it would wait, which only stdin, a pipe or a terminal does. [task] cancellation point if `wait` */
int list_next(struct list *l, bool wait, const char **ret_line, size_t *ret_size, unsigned long *ret_number);

/* What is left of a line without blanks around it and CR; false: nothing, or a comment. */
bool list_clean(char **line, size_t *size);

/* How many entries are left, if it is a regular file; else -ESPIPE. Reads the file once more. */
int64_t list_count(struct list *l);

#endif
