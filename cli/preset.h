/* SPDX-License-Identifier: MIT */
#ifndef CLI_PRESET_H
#define CLI_PRESET_H

/* Presets: files of options, one a line, "name = value" or a name alone. */

#include "options.h"

/* If the only word on the command line is the name of a preset, takes it away and sets what the file says where the
 * command line has not. 0, or -EINVAL, -ENOENT, ... with one line in *ret_problem. */
int preset_apply(struct options *o, struct text *ret_problem);

#endif
