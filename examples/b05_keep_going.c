/* SPDX-License-Identifier: MIT */
/* B5: the same stories, but one failure does not lose the others. */
#include <stdio.h>

#include <resha/resha.h>

enum { STORIES = 5 };

struct story {
        int id;
        char title[32];
};

static int fetch(void *arg)
{
        struct story *s = arg;
        int rc = resha_sleep(RESHA_MS(s->id < 0 ? 500 : 1000));

        if (rc < 0)
                return rc;
        if (s->id < 0)
                return resha_fail(-ENOENT, "story %d: no such story", s->id);
        snprintf(s->title, sizeof s->title, "Story %d", s->id);
        return 0;
}

static int program(void *arg)
{
        struct story s[STORIES] = { { .id = 1 }, { .id = 2 }, { .id = -1 }, { .id = 3 }, { .id = 4 } };
        resha_error errors[STORIES];
        size_t failed = 0;

        (void)arg;
        int rc = resha_gather(fetch, s, STORIES, sizeof s[0],
                              &(resha_gather_opts){ .keep_going = true, .ret_errors = errors, .ret_failed = &failed });
        for (int i = 0; i < STORIES; i++)
                printf("%s\n", errors[i].code ? errors[i].text : s[i].title);
        printf("Got %zu stories, %zu failed\n", STORIES - failed, failed);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
