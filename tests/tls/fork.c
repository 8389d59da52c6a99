/* SPDX-License-Identifier: MIT */
/* A process that is forked while another thread makes the default configuration: what that thread has is never given
 * back in the child, which makes its own. */

#include "handshake.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/crypto.h>

/* An allocation of OpenSSL's on that thread stands still, in the middle of the making. */
static _Thread_local bool stops;
static sem_t reached, go;

/* The C library's own, past resha's: what OpenSSL keeps for the whole process would look like a leak there. */
static void *retake(void *p, size_t size, const char *file, int line)
{
        (void)file, (void)line;
        if (stops) {
                stops = false;
                sem_post(&reached);
                sem_wait(&go);
        }
        return reallocarray(p, 1, size);
}

static void *take(size_t size, const char *file, int line)
{
        return retake(NULL, size, file, line);
}

static void let_go(void *p, const char *file, int line)
{
        (void)file, (void)line;
        p = p ? reallocarray(p, 1, 0) : NULL;
}

__attribute__((constructor)) static void set_functions(void)
{
        if (CRYPTO_set_mem_functions(take, retake, let_go) != 1)
                abort();
}

static void *make(void *arg)
{
        resha_tls *t;

        stops = arg != NULL;
        ASSERT_OK(rs_tls_default(&t));
        rs_tls_default_drop();
        return NULL;
}

TEST(a_child_makes_its_own_default)
{
        pthread_t thread;
        int status;

        setenv("SSL_CERT_FILE", temp_file("good.pem", cert_pem(good_root())), 1);
        make(NULL);
        ASSERT_EQ(sem_init(&reached, 0, 0), 0);
        ASSERT_EQ(sem_init(&go, 0, 0), 0);
        ASSERT_EQ(pthread_create(&thread, NULL, make, &reached), 0);
        ASSERT_EQ(sem_wait(&reached), 0);
        pid_t pid = fork();
        if (pid == 0) {
                resha_tls *t = NULL;
                alarm(20);
                if (rs_tls_default(&t) == 0 && t)
                        execl("/bin/true", "true", (char *)NULL); /* what the thread had would be called lost at exit */
                _exit(1);
        }
        ASSERT_EQ(sem_post(&go), 0);
        ASSERT_EQ(pthread_join(thread, NULL), 0);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        ASSERT_EQ(status, 0);
}
