/* SPDX-License-Identifier: MIT */
#ifndef RS_CALL_H
#define RS_CALL_H

/* For the files of this folder that make system calls. */

#include <errno.h>

#include "sys/sys.h"

/* The result of the expression, or of the fault that a test put in its place. */
#define CALL(which, expression) \
        ({ \
                ssize_t result_; \
                do { \
                        result_ = rs_fault_syscall(which); \
                        if (RS_LIKELY(result_ == 0)) { \
                                result_ = (expression); \
                                if (RS_UNLIKELY(result_ < 0)) \
                                        result_ = -errno; \
                        } \
                } while (RS_UNLIKELY(result_ == -EINTR)); \
                result_; \
        })

#endif
