/* SPDX-License-Identifier: MIT */
/* Two loops with all kinds of things open; one of them writes the figures of both. */

#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

static uint64_t values[2] = { 7, 1500000000 };
static const resha_figure figures[2] = {
        { "program_requests_total", "With a \\ and\na second line.", RESHA_FIGURE_COUNTER, false },
        { "program_longest_seconds", "The longest.", RESHA_FIGURE_MOST, true },
};
static const resha_shown_kind kind = { .kind = "program", .figures = figures, .count = 2, .label = "host" };

static resha_sender *ready_tx, *over_tx;
static resha_receiver *ready_rx, *over_rx;

static int job(void *arg)
{
        return arg != NULL;
}

static int getter(void *queue)
{
        char item;
        int rc = resha_queue_get(queue, &item);

        return rc == -ECANCELED ? 0 : rc;
}

static int reader(void *stream)
{
        char byte;
        ssize_t rc = resha_read(stream, &byte, 1);

        return rc == -ECANCELED ? 0 : (int)rc;
}

static bool is_up_to_date(void)
{
        char *text, *at;
        bool found = false;

        if (resha_stats_text(&text, NULL) < 0)
                return true; /* and the test sees that */
        at = strstr(text, "\nresha_queue_waiting_to_get{");
        for (; at && !found; at = strstr(at + 1, "\nresha_queue_waiting_to_get{"))
                found = strncmp(strchr(at, '}'), "} 1\n", 4) == 0;
        resha_free(text);
        return found;
}

/* The other loop has three tasks then, and this one two. */
static int write_figures(void)
{
        int go;
        int rc = resha_recv(ready_rx, &go);

        while (rc > 0 && !is_up_to_date()) /* the other loop is asked by each call, for the next one */
                rc = resha_sleep(RESHA_MS(1)) < 0 ? -ECANCELED : 1;
        if (rc > 0)
                rc = resha_stats_write(1);
        return rc < 0 ? rc : resha_send(over_tx, &go);
}

static int with_things(resha_stream **pair, resha_queue *full, resha_queue *empty)
{
        RESHA_GROUP(g);
        int go = 1, rc = 0;

        resha_group_begin(&g, &(resha_group_opts){ .background = true });
        resha_spawn(&g, reader, pair[0]);
        for (char item = 0; rc >= 0 && item < 2; item++)
                rc = resha_queue_put(full, &item);
        if (rc >= 0)
                rc = resha_pool_run(NULL, job, NULL, NULL);
        if (rc >= 0)
                rc = empty ? resha_spawn(&g, getter, empty) : 0;
        if (rc >= 0)
                rc = resha_sleep(RESHA_MS(2)); /* they wait */
        if (rc >= 0 && empty)
                rc = resha_send(ready_tx, &go);
        if (rc >= 0)
                rc = empty ? resha_recv(over_rx, &go) : write_figures();
        return resha_group_end(&g, rc < 0 ? rc : 0);
}

static int loop(void *arg)
{
        resha_shown s RESHA_CLEANUP(resha_shown_end) = { { 0 } };
        resha_queue *full RESHA_CLEANUP(resha_queue_freep) = NULL, *empty RESHA_CLEANUP(resha_queue_freep) = NULL;
        resha_stream *pair[2];
        bool first = *(int *)arg == 0;
        int rc = resha_stream_pair(pair);

        if (rc < 0)
                return rc;
        rc = resha_shown_begin(&s, &kind, NULL, first ? "a\"b\\c\n" : "plain", values, __builtin_return_address(0));
        if (rc == 0)
                rc = resha_queue_new(1, 10, NULL, &full);
        if (rc == 0 && first)
                rc = resha_queue_new(1, 10, NULL, &empty);
        if (rc == 0)
                rc = with_things(pair, full, empty);
        resha_stream_close(pair[0]);
        resha_stream_close(pair[1]);
        char item;
        while (full && resha_queue_try_get(full, &item) > 0)
                ;
        return rc;
}

int main(void)
{
        int numbers[2] = { 0, 1 };

        if (resha_channel_new(sizeof(int), 1, &ready_tx, &ready_rx) < 0 ||
            resha_channel_new(sizeof(int), 1, &over_tx, &over_rx) < 0)
                return 1;
        int status = resha_main_loops(loop, numbers, 2, sizeof numbers[0]);
        resha_sender_close(ready_tx);
        resha_sender_close(over_tx);
        resha_receiver_close(ready_rx);
        resha_receiver_close(over_rx);
        return status;
}
