/* SPDX-License-Identifier: MIT */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include "exits.h"

/* `resha fetch`, with the words behind it. The exit status. */
int fetch_main(int argc, char **argv);

#endif
