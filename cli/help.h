/* SPDX-License-Identifier: MIT */
#ifndef CLI_HELP_H
#define CLI_HELP_H

extern const char help_resha[];
extern const char help_fetch[];

#endif
