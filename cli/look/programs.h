/* SPDX-License-Identifier: MIT */
#ifndef CLI_PROGRAMS_H
#define CLI_PROGRAMS_H

#include "asked.h"

/* `resha ps`: the programs of this user that have an inspector. The exit code. */
int programs_list(const struct asked *a);

#endif
