/* SPDX-License-Identifier: MIT */
#ifndef CLI_STATUS_H
#define CLI_STATUS_H

/* What went wrong with a URL, as words. */

#include "text.h"

/* "404 Not Found"; a number without a known name stands alone. */
void status_add(struct text *t, int status);

/* The text of an HTTP error without "GET URL: " in front of it, and with the option where the library names its own. */
void status_add_error(struct text *t, int rc);

#endif
