/* SPDX-License-Identifier: MIT */
#ifndef HOOKS_H
#define HOOKS_H

/* Where the tests are run as trials (tests/audit), this library asks there; elsewhere these functions do not exist. */

struct test;

void audit_setup(void);                /* before the first test */
void audit_test(const struct test *t); /* in place of its function, in its process */
void audit_summary(void);              /* after the last one */
void audit_failed(void);               /* an assertion does not hold; returns if that is a failure */
const char *audit_backend(void);       /* under test; NULL: as ever */
void audit_cannot(const char *what) __attribute__((noreturn)); /* a test does what no trial can */

#endif
