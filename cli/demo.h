/* SPDX-License-Identifier: MIT */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

/* `resha demo`: what concurrent fetching looks like, against the built-in origin. The exit status. */
int demo_main(int argc, char **argv);

#endif
