/* SPDX-License-Identifier: MIT */
/* The fault: a pool of two threads, and two jobs on it that wait for what a third one would bring. It waits for a
 * thread. */
#include <pthread.h>

#include <resha/resha.h>

struct mail {
        resha_pool *pool;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int letters;
};

static int wait_for_letter(void *arg)
{
        struct mail *m = arg;
        pthread_mutex_lock(&m->lock);
        while (m->letters == 0)
                pthread_cond_wait(&m->changed, &m->lock);
        m->letters--;
        pthread_mutex_unlock(&m->lock);
        return 0;
}

static int write_letters(void *arg)
{
        struct mail *m = arg;
        pthread_mutex_lock(&m->lock);
        m->letters += 2;
        pthread_cond_broadcast(&m->changed);
        pthread_mutex_unlock(&m->lock);
        return 0;
}

static int reader(void *arg)
{
        struct mail *m = arg;
        return resha_pool_run(m->pool, wait_for_letter, m, NULL);
}

static int writer(void *arg)
{
        struct mail *m = arg;
        int rc = resha_sleep(RESHA_MS(10));
        return rc < 0 ? rc : resha_pool_run(m->pool, write_letters, m, NULL);
}

static int program(void *arg)
{
        struct mail m = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
        (void)arg;
        int rc = resha_pool_new(&(resha_pool_opts){ .threads = 2, .name = "mail" }, &m.pool);
        if (rc < 0)
                return rc;
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, reader, &m);
        resha_spawn(&g, reader, &m);
        resha_spawn(&g, writer, &m);
        rc = resha_group_end(&g, 0);
        resha_pool_free(m.pool);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
