/* SPDX-License-Identifier: MIT */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

/* What went wrong with a URL, as words. */

#include "text.h"

/* "404 Not Found"; a number without a known name stands alone. */
void status_add(struct text *t, int status);

/* The text of an HTTP error without "GET URL: " in front of it. */
const char *status_short_error(const char *text);

#endif
