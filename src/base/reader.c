/* SPDX-License-Identifier: MIT */
/* Memory that is there, read by copying it. A text ends where it ends: nothing behind its zero is touched. */

#include "base/reader.h"

#include <string.h>

static bool read_here(void *to, const void *from, size_t size)
{
        if (!from)
                return false;
        memcpy(to, from, size);
        return true;
}

static bool text_here(const char *from, char *ret_text, size_t size)
{
        if (!from)
                return false;
        size_t n = strnlen(from, size - 1);
        memcpy(ret_text, from, n);
        ret_text[n] = '\0';
        return true;
}

const struct rs_reader rs_reader_here = { read_here, text_here };
