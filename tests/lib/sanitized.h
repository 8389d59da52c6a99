/* SPDX-License-Identifier: MIT */
#ifndef SANITIZED_H
#define SANITIZED_H

/* Under which sanitizer a test was built, said by either compiler, and whether it runs under Valgrind: 0 or 1. */

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define TEST_VALGRIND (RUNNING_ON_VALGRIND != 0)
#else
#define TEST_VALGRIND 0
#endif

#if defined(__has_feature)
#define TEST_ASAN __has_feature(address_sanitizer)
#define TEST_TSAN __has_feature(thread_sanitizer)
#else
#ifdef __SANITIZE_ADDRESS__
#define TEST_ASAN 1
#else
#define TEST_ASAN 0
#endif
#ifdef __SANITIZE_THREAD__
#define TEST_TSAN 1
#else
#define TEST_TSAN 0
#endif
#endif

#endif
