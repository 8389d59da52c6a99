/* SPDX-License-Identifier: MIT */

/* Presets. Looked for in $XDG_CONFIG_HOME/resha/presets (or ~/.config/...), then where they are installed, then in the
 * source tree, both found from the place of the program itself, so that an installation can be moved. */

#include "preset.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <resha/error.h>

#include "list.h"
#include "url.h"

/* Cuts a line into name and value, in place; a name alone has no value. */
static void split(char *line, char **ret_name, char **ret_value)
{
        char *equals = strchr(line, '=');
        *ret_name = line;
        *ret_value = NULL;
        if (!equals)
                return;
        *ret_value = equals + 1 + strspn(equals + 1, " \t");
        while (equals > line && (equals[-1] == ' ' || equals[-1] == '\t'))
                equals--;
        *equals = '\0';
}

static int read_lines(struct options *o, struct list *l, const char *path, struct text *problem)
{
        const char *line;
        size_t size;
        unsigned long number;
        int rc;
        while ((rc = list_next(l, true, &line, &size, &number)) > 0) {
                char *copy = options_keep(o, size + 1), *name, *value;
                if (!copy)
                        return -ENOMEM;
                memcpy(copy, line, size + 1);
                split(copy, &name, &value);
                TEXT(why);
                rc = options_set(o, name, value, &why);
                if (rc < 0) {
                        text_printf(problem, "%s, line %lu: %s", path, number, text_string(&why));
                        return rc;
                }
        }
        if (rc < 0)
                text_printf(problem, "%s: %s", path, resha_strerror(rc));
        return rc;
}

static void add_user_path(struct text *t, const char *name)
{
        const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        if (config && *config)
                text_printf(t, "%s/resha/presets/%s", config, name);
        else if (home && *home)
                text_printf(t, "%s/.config/resha/presets/%s", home, name);
}

/* The path of the program itself; without /proc by the name it was called with. */
static bool find_self(char path[PATH_MAX])
{
        ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
        path[n > 0 ? n : 0] = '\0';
        return n > 0 || (strchr(program_invocation_name, '/') && realpath(program_invocation_name, path));
}

/* Where the program is, with `up` directories taken off its end. */
static void add_own_path(struct text *t, unsigned up, const char *rest, const char *name)
{
        char self[PATH_MAX];
        if (!find_self(self))
                return;
        for (unsigned i = 0; i < up; i++) {
                char *slash = strrchr(self, '/');
                if (!slash)
                        return;
                *slash = '\0';
        }
        text_printf(t, "%s/%s/%s", self, rest, name);
}

static int apply_named(struct options *o, const char *name, struct text *problem)
{
        for (int place = 0; place < 3 && *name; place++) {
                TEXT(path);
                if (place == 0)
                        add_user_path(&path, name);
                else if (place == 1)
                        add_own_path(&path, 2, "share/resha/presets", name); /* PREFIX/bin/resha */
                else
                        add_own_path(&path, 3, "presets", name); /* build/cli/resha in the source tree */
                struct list *l RESHA_CLEANUP(list_freep) = NULL;
                if (path.len && access(text_string(&path), F_OK) == 0) {
                        int rc = list_open(text_string(&path), &l);
                        if (rc < 0)
                                text_printf(problem, "preset '%s': %s: %s", name, text_string(&path),
                                            resha_strerror(rc));
                        return rc < 0 ? rc : read_lines(o, l, text_string(&path), problem);
                }
        }
        text_printf(problem, "no preset '%s'; a URL starts with http:// or https://", name);
        return -ENOENT;
}

int preset_apply(struct options *o, struct text *ret_problem)
{
        for (size_t i = 0; i < o->n_urls; i++) {
                if (url_like(o->urls[i]))
                        continue;
                if (o->n_urls > 1) {
                        text_printf(ret_problem, "'%s': a preset stands alone; a URL starts with http:// or https://",
                                    o->urls[i]);
                        return -EINVAL;
                }
                o->preset = o->urls[i];
                o->n_urls = 0;
                return apply_named(o, o->preset, ret_problem);
        }
        return 0;
}
