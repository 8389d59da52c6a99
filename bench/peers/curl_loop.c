/* SPDX-License-Identifier: MIT */
/* The bare loop that resha fetch is measured against: curl_multi_socket_action() driven by epoll.
 *
 * As good as we could make it: a fixed set of slots, each with an easy handle and a body buffer that are used again;
 * connections stay open; a descriptor stays in the epoll set between requests, because libcurl takes it out and puts it
 * back for each (20,000 calls of epoll_ctl for 10,000 requests); answers are handed on without a copy. The options are
 * those that resha's own HTTP client sets. */

#include "curl_loop.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 64, CONNECT_MS = 10000, TOTAL_MS = 30000, BODY_MAX = 16 << 20, FDS = 4096 };

struct slot {
        CURL *easy;
        const char *url;
        char *body;
        size_t size, room;
        struct timespec started;
        char error[CURL_ERROR_SIZE];
};

static CURLM *multi;
static int epfd;
static long timeout_ms = -1;
static uint32_t registered[FDS], wanted[FDS];

static char **all_urls;
static size_t next_url, url_count, running_count;
static void (*on_done)(const struct answer *a);

static void must(int ok, const char *what)
{
        if (!ok) {
                fprintf(stderr, "curl_loop: %s: %s\n", what, strerror(errno));
                exit(1);
        }
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
        struct slot *s = arg;
        size_t size = one * n;

        if (s->size + size > BODY_MAX)
                return 0;
        if (s->size + size > s->room) {
                s->room = (s->size + size) * 2;
                s->body = realloc(s->body, s->room);
                must(s->body != NULL, "body");
        }
        memcpy(s->body + s->size, data, size);
        s->size += size;
        return size;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
        (void)easy;
        (void)arg;
        (void)unused;
        must(fd < FDS, "more descriptors than expected");
        wanted[fd] = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
        if (what == CURL_POLL_REMOVE || wanted[fd] == registered[fd]) {
                wanted[fd] = what == CURL_POLL_REMOVE ? 0 : wanted[fd];
                return 0;
        }
        struct epoll_event e = { .events = wanted[fd], .data.fd = fd };
        int op = registered[fd] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        must(epoll_ctl(epfd, op, fd, &e) == 0, "epoll_ctl");
        registered[fd] = wanted[fd];
        return 0;
}

static int on_close(void *arg, curl_socket_t fd)
{
        (void)arg;
        registered[fd] = wanted[fd] = 0;
        return close(fd);
}

static int on_timer(CURLM *m, long ms, void *arg)
{
        (void)m;
        (void)arg;
        timeout_ms = ms;
        return 0;
}

static void set_options(struct slot *s)
{
        CURL *e = s->easy;

        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
        curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(e, CURLOPT_HTTP09_ALLOWED, 0L);
        curl_easy_setopt(e, CURLOPT_PATH_AS_IS, 1L);
        curl_easy_setopt(e, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
        curl_easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
        curl_easy_setopt(e, CURLOPT_MAXAGE_CONN, 15L);
        curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(e, CURLOPT_PROXY, "");
        curl_easy_setopt(e, CURLOPT_USERAGENT, "plain/0.1.0");
        curl_easy_setopt(e, CURLOPT_ACCEPT_ENCODING, "gzip, deflate, br");
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
        curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)TOTAL_MS);
        curl_easy_setopt(e, CURLOPT_ERRORBUFFER, s->error);
        curl_easy_setopt(e, CURLOPT_PRIVATE, s);
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(e, CURLOPT_WRITEDATA, s);
        curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
}

/* The next URL, if there is one. */
static void start(struct slot *s)
{
        if (next_url == url_count)
                return;
        s->url = all_urls[next_url++];
        s->size = 0;
        s->error[0] = 0;
        clock_gettime(CLOCK_REALTIME, &s->started);
        curl_easy_setopt(s->easy, CURLOPT_URL, s->url);
        must(curl_multi_add_handle(multi, s->easy) == CURLM_OK, "curl_multi_add_handle");
        running_count++;
}

static void format_time(const struct timespec *t, char ret_text[25])
{
        static char text[32];
        static time_t second = -1;

        if (t->tv_sec != second) {
                struct tm tm;

                second = t->tv_sec;
                gmtime_r(&second, &tm);
                strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
        }
        snprintf(ret_text, 25, "%.19s.%03uZ", text, (unsigned)(t->tv_nsec / 1000000) % 1000);
}

static const char *header(struct slot *s, const char *name)
{
        struct curl_header *h;

        return curl_easy_header(s->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value : NULL;
}

static void finish(struct slot *s, CURLcode result)
{
        struct answer a = { .url = s->url, .body = s->body, .size = s->size };
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        format_time(&s->started, a.started_at);
        format_time(&now, a.finished_at);
        if (result == CURLE_OK) {
                curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &a.status);
                a.content_type = header(s, "content-type");
                a.etag = header(s, "etag");
                a.last_modified = header(s, "last-modified");
        } else {
                a.error = s->error[0] ? s->error : curl_easy_strerror(result);
        }
        on_done(&a);
        must(curl_multi_remove_handle(multi, s->easy) == CURLM_OK, "curl_multi_remove_handle");
        running_count--;
        start(s);
}

static void collect(void)
{
        CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(multi, &left))) {
                char *s;

                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &s);
                finish((struct slot *)(void *)s, m->data.result);
        }
}

static void action(curl_socket_t fd, int mask)
{
        int running;

        must(curl_multi_socket_action(multi, fd, mask, &running) == CURLM_OK, "curl_multi_socket_action");
}

static void one_event(const struct epoll_event *e)
{
        int fd = e->data.fd, mask = 0;

        if (!wanted[fd]) { /* a pooled connection that the server has closed */
                epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
                registered[fd] = 0;
                return;
        }
        mask |= e->events & EPOLLIN ? CURL_CSELECT_IN : 0;
        mask |= e->events & EPOLLOUT ? CURL_CSELECT_OUT : 0;
        mask |= e->events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0;
        action(fd, mask);
}

static void loop(void)
{
        struct epoll_event events[EVENTS];

        while (running_count) {
                int n = timeout_ms == 0 ? 0 : epoll_wait(epfd, events, EVENTS, (int)timeout_ms);
                must(n >= 0 || errno == EINTR, "epoll_wait");
                if (n == 0) {
                        timeout_ms = -1;
                        action(CURL_SOCKET_TIMEOUT, 0);
                }
                for (int i = 0; i < n; i++)
                        one_event(&events[i]);
                collect();
        }
}

void curl_loop_run(char **urls, size_t n, unsigned concurrency, void (*done)(const struct answer *a))
{
        struct slot *slots = calloc(concurrency, sizeof *slots);

        must(slots != NULL, "slots");
        all_urls = urls;
        url_count = n;
        on_done = done;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        multi = curl_multi_init();
        epfd = epoll_create1(EPOLL_CLOEXEC);
        must(multi && epfd >= 0, "start");
        curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)concurrency);
        for (unsigned i = 0; i < concurrency; i++) {
                slots[i].easy = curl_easy_init();
                must(slots[i].easy != NULL, "curl_easy_init");
                set_options(&slots[i]);
                start(&slots[i]);
        }
        loop();
        for (unsigned i = 0; i < concurrency; i++) {
                curl_easy_cleanup(slots[i].easy);
                free(slots[i].body);
        }
        curl_multi_cleanup(multi);
        close(epfd);
        free(slots);
}

char **curl_loop_urls(const char *path, size_t *ret_n)
{
        FILE *f = fopen(path, "re");
        char **urls = NULL, *line = NULL;
        size_t n = 0, room = 0, size = 0;
        ssize_t len;

        must(f != NULL, path);
        while ((len = getline(&line, &size, f)) > 0) {
                if (n == room) {
                        room = room * 2 + 64;
                        urls = realloc(urls, room * sizeof *urls);
                        must(urls != NULL, "URLs");
                }
                line[strcspn(line, "\r\n")] = 0;
                urls[n] = strdup(line);
                must(urls[n] != NULL, "URLs");
                n++;
        }
        free(line);
        fclose(f);
        *ret_n = n;
        return urls;
}
