/* SPDX-License-Identifier: MIT */
/* The peer of http_get.c: a bare loop on libcurl's multi-socket interface and epoll, with the same curl options,
 * handles that are used again, lazy removal from the epoll set, bodies and headers taken by callbacks into a buffer.
 * What it lacks is all that a client needs beside: limits, timeouts of its own, checks, cancellation, answers that
 * outlive the loop. */

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

struct slot {
        CURL *easy;
        char *body;
        size_t size, room;
};

struct loop {
        CURLM *multi;
        int epfd;
        long timeout; /* ms; -1: none */
        unsigned char registered[1024];
        unsigned left, running;
        size_t bytes;
        const char *url;
        struct curl_slist *headers;
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *unused)
{
        struct loop *l = arg;
        unsigned char want = 0;
        (void)easy;
        (void)unused;
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                want |= EPOLLIN;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                want |= EPOLLOUT;
        if (want == 0 || want == l->registered[fd])
                return 0;
        struct epoll_event e = { .events = want, .data.fd = fd };
        epoll_ctl(l->epfd, l->registered[fd] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
        l->registered[fd] = want;
        return 0;
}

static int on_close(void *arg, curl_socket_t fd)
{
        struct loop *l = arg;
        l->registered[fd] = 0;
        return close(fd);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
        struct loop *l = arg;
        (void)multi;
        l->timeout = ms;
        return 0;
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
        struct slot *s = arg;
        n *= one;
        if (s->size + n > s->room) {
                s->room = 2 * (s->size + n);
                s->body = realloc(s->body, s->room);
        }
        memcpy(s->body + s->size, data, n);
        s->size += n;
        return n;
}

static void start(struct loop *l, struct slot *s)
{
        if (l->left == 0)
                return;
        l->left--;
        l->running++;
        s->size = 0;
        curl_easy_setopt(s->easy, CURLOPT_URL, l->url);
        curl_multi_add_handle(l->multi, s->easy);
}

static void open_slot(struct loop *l, struct slot *s)
{
        CURL *e = s->easy = curl_easy_init();
        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(e, CURLOPT_PROXY, "");
        curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, l->headers);
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(e, CURLOPT_WRITEDATA, s);
        curl_easy_setopt(e, CURLOPT_PRIVATE, s);
        curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, on_close);
        curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, l);
}

static void collect(struct loop *l)
{
        CURLMsg *m;
        int unused;
        while ((m = curl_multi_info_read(l->multi, &unused))) {
                char *p = NULL;
                long status = 0;
                CURL *e = m->easy_handle;
                if (m->data.result != CURLE_OK)
                        exit(fprintf(stderr, "%s\n", curl_easy_strerror(m->data.result)) > 0);
                curl_easy_getinfo(e, CURLINFO_PRIVATE, &p);
                curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
                struct slot *s = (struct slot *)(void *)p;
                l->bytes += s->size;
                l->running--;
                curl_multi_remove_handle(l->multi, e);
                start(l, s);
        }
}

static void run(struct loop *l)
{
        struct epoll_event events[64];
        int unused;
        while (l->running > 0) {
                if (l->timeout == 0) {
                        l->timeout = -1;
                        curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &unused);
                        collect(l);
                        continue;
                }
                int n = epoll_wait(l->epfd, events, 64, l->timeout > 1000 || l->timeout < 0 ? 1000 : (int)l->timeout);
                if (n == 0)
                        curl_multi_socket_action(l->multi, CURL_SOCKET_TIMEOUT, 0, &unused);
                for (int i = 0; i < n; i++)
                        curl_multi_socket_action(l->multi, events[i].data.fd,
                                                 (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                                                         (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0),
                                                 &unused);
                collect(l);
        }
}

static double cpu_us(void)
{
        struct rusage u;
        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double wall_us(void)
{
        struct timeval t;
        gettimeofday(&t, NULL);
        return (double)t.tv_sec * 1e6 + (double)t.tv_usec;
}

int main(int argc, char **argv)
{
        static struct loop l;
        if (argc != 4)
                return 2;
        unsigned requests = (unsigned)strtoul(argv[2], NULL, 10), at_once = (unsigned)strtoul(argv[3], NULL, 10);
        struct slot *slots = calloc(at_once, sizeof *slots);
        curl_global_init(CURL_GLOBAL_DEFAULT);
        l.multi = curl_multi_init();
        l.epfd = epoll_create1(EPOLL_CLOEXEC);
        l.url = argv[1];
        l.left = requests;
        l.timeout = -1;
        l.headers = curl_slist_append(NULL, "Accept-Encoding: gzip, deflate, br");
        l.headers = curl_slist_append(l.headers, "User-Agent: bare/0.1.0");
        l.headers = curl_slist_append(l.headers, "Expect:");
        curl_multi_setopt(l.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(l.multi, CURLMOPT_SOCKETDATA, &l);
        curl_multi_setopt(l.multi, CURLMOPT_TIMERFUNCTION, on_timer);
        curl_multi_setopt(l.multi, CURLMOPT_TIMERDATA, &l);
        curl_multi_setopt(l.multi, CURLMOPT_MAXCONNECTS, 200L);
        double cpu = cpu_us(), wall = wall_us();
        for (unsigned i = 0; i < at_once; i++) {
                open_slot(&l, &slots[i]);
                start(&l, &slots[i]);
        }
        run(&l);
        printf("{\"bench\":\"http_get\",\"who\":\"bare\",\"at_once\":%u,\"requests\":%u,\"bytes\":%zu,\"cpu_us\":%.2f,"
               "\"wall_us\":%.2f}\n",
               at_once, requests, l.bytes, (cpu_us() - cpu) / requests, (wall_us() - wall) / requests);
        for (unsigned i = 0; i < at_once; i++) {
                curl_easy_cleanup(slots[i].easy);
                free(slots[i].body);
        }
        free(slots);
        curl_multi_cleanup(l.multi);
        curl_slist_free_all(l.headers);
        curl_global_cleanup();
        return 0;
}
