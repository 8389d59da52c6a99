/* SPDX-License-Identifier: MIT */
/* A test outside the tree, of three tasks that take turns: built against the installed copy by `pkg-config
 * resha-test`. */

#include <resha/resha.h>
#include <resha/test.h>
#include <stdio.h>

struct squares {
        resha_mutex lock;
        int next, value[3];
};

static int square(void *arg)
{
        struct squares *s = arg;
        int rc = resha_mutex_lock(&s->lock);

        if (rc < 0)
                return rc;
        rc = resha_sleep(RESHA_MS(1));
        if (rc >= 0) {
                s->value[s->next] = (s->next + 1) * (s->next + 1);
                s->next++;
        }
        resha_mutex_unlock(&s->lock);
        return rc;
}

static int program(void *arg)
{
        struct squares *s = arg;
        RESHA_GROUP(g);

        resha_group_begin(&g, NULL);
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, square, s);
        return resha_group_end(&g, 0);
}

static void check(void *arg, int rc, const resha_test_trial *t)
{
        struct squares *s = arg;

        (void)rc;
        resha_test_expect(!resha_mutex_locked(&s->lock));
        resha_test_expect(t->disturbed || s->next == 3);
        if (t->seed == 19 && !t->cancel && !t->alloc && !t->operation)
                printf("%d %d %d\n", s->value[0], s->value[1], s->value[2]);
}

int main(void)
{
        resha_test_result result;
        resha_test_opts opts = { .state = sizeof(struct squares), .check = check, .ret_result = &result };

        return resha_test_run(program, &opts) || result.trials < 500;
}
