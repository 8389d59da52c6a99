/* SPDX-License-Identifier: MIT */
#ifndef RS_ITEM_H
#define RS_ITEM_H

/* Items of queues and channels. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Items are mostly a pointer or an int: worth a copy without a call. */
static inline void rs_item_copy(void *to, const void *from, size_t size)
{
        if (size == sizeof(uint64_t))
                memcpy(to, from, sizeof(uint64_t));
        else if (size == sizeof(uint32_t))
                memcpy(to, from, sizeof(uint32_t));
        else
                memcpy(to, from, size);
}

#endif
