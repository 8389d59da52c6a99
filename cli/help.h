/* SPDX-License-Identifier: MIT */
#ifndef CLI_HELP_H
#define CLI_HELP_H

extern const char help_resha[];
extern const char help_fetch[];

/* Of what looks into programs: look/help.c. */
extern const char help_ps[];
extern const char help_tree[];
extern const char help_top[];
extern const char help_stack[];
extern const char help_trace[];
extern const char help_stats[];

#endif
