/* SPDX-License-Identifier: MIT */

/* The demo's work that blocks. It stops the loop, with it the server of the demo, which is on the same one, and the
 * redrawing: that is what is to be seen. Meanwhile the watchdog calls blocking_report() on a thread of its own, which
 * leaves what it has to say in `text`; the act prints it when it is over. */

#include "blocking.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <resha/http.h>

#include "stories.h"

enum { STORIES = 15, AT_ONCE = 5, SLOW = 3, BLOCKS_US = 600000, FRAMES = 5 };

enum { SEEN_NOTHING, SEEN_WANTED, SEEN_WRITING, SEEN_IT };

struct story {
        const char *url; /* of the server */
        resha_http *session;
        struct lanes *lanes;
        unsigned number;
        bool on_thread;
};

/* As a library does that knows nothing of loops. */
static int __attribute__((noinline)) parse(void *arg)
{
        (void)arg;
        return usleep(BLOCKS_US) < 0 ? -errno : 0;
}

static int get(struct story *s, const char *what, const char *label, int *ret_block)
{
        char url[128];
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        snprintf(url, sizeof url, "%s/v0/%s.json", s->url, what);
        *ret_block = lanes_begin(s->lanes, label);
        int rc = resha_http_get(s->session, url, &r);
        lanes_end(s->lanes, *ret_block, rc < 0, 0);
        return rc;
}

static int story(void *arg)
{
        struct story *s = arg;
        char name[32], label[LANES_LABEL], what[32];
        snprintf(name, sizeof name, "story %02u", s->number);
        resha_task_set_name(name);
        snprintf(label, sizeof label, "%02u", s->number);
        snprintf(what, sizeof what, "item/%u", STORIES_FIRST_ID + s->number - 1);
        int block, rc = get(s, what, label, &block);
        if (rc < 0 || s->number != SLOW)
                return rc;
        block = lanes_begin_after(s->lanes, block, "parse");
        if (s->on_thread)
                rc = resha_pool_run(NULL, parse, s, NULL);
        else
                rc = parse(s);
        lanes_end(s->lanes, block, !s->on_thread, 0);
        return rc;
}

/* The list, and the stories on it. */
static int all_stories(void *arg)
{
        struct story stories[STORIES];
        int block, rc = get(arg, "topstories", "id", &block);
        for (unsigned i = 0; i < STORIES; i++) {
                stories[i] = *(struct story *)arg;
                stories[i].number = i + 1;
        }
        if (rc < 0)
                return rc;
        return resha_gather(story, stories, STORIES, sizeof stories[0], &(resha_gather_opts){ .limit = AT_ONCE });
}

/* "parse+0x13 (work.c:61)" is added as "parse (work.c:61)", and what has no line as its name alone. */
static void add_frame(char *text, size_t size, char *frame)
{
        size_t n = strlen(text);
        char *place = strchr(frame, '(');
        frame[strcspn(frame, "+ ")] = '\0';
        bool line = place && strchr(place, ':');
        snprintf(text + n, size - n, "%s%s%s%s", n ? " <- " : "", frame, line ? " " : "", line ? place : "");
}

void blocking_report(const resha_report *report, void *blocking)
{
        struct blocking *b = blocking;
        char stack[400] = "", frame[256];
        int wanted = SEEN_WANTED;
        if (report->kind != RESHA_REPORT_BLOCKED || !report->task || !report->spawned_at ||
            !atomic_compare_exchange_strong(&b->seen, &wanted, SEEN_WRITING))
                return;
        for (size_t i = 0, n = 0; i < report->depth && n < FRAMES; i++)
                if (resha_frame_format(report->stack[i], frame, sizeof frame)) {
                        add_frame(stack, sizeof stack, frame);
                        n++;
                }
        snprintf(b->text, sizeof b->text, "   task \"%s\" from %s %s\n%s%s%s", report->task, report->spawned_at,
                 report->text, stack[0] ? "      " : "", stack, stack[0] ? "\n" : "");
        atomic_store(&b->seen, SEEN_IT);
}

static int play(const struct stage_style *style, const char *title, struct story *first)
{
        struct stage *s = resha_calloc(1, sizeof *s);
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = s ? resha_http_new(NULL, &session) : -ENOMEM;
        if (rc >= 0) {
                s->style = *style;
                s->title = title;
                first->session = session;
                first->lanes = &s->lanes;
                rc = stage_play(s, all_stories, first);
        }
        resha_free(s);
        return rc;
}

int blocking_play(struct blocking *b, const struct stage_style *style, const char *url)
{
        struct story s = { .url = url };
        atomic_store(&b->seen, SEEN_WANTED);
        int rc = play(style, "5  The classic mistake: 03 is parsed by a call that blocks", &s);
        if (rc < 0)
                return rc;
        if (atomic_exchange(&b->seen, SEEN_NOTHING) == SEEN_IT)
                fputs(b->text, stdout);
        s.on_thread = true;
        rc = play(style, "   The same on a thread: resha_pool_run(NULL, parse, ...)", &s);
        puts("");
        return rc;
}
