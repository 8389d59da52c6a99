/* SPDX-License-Identifier: MIT */
#ifndef RS_HTTP_DRIVER_H
#define RS_HTTP_DRIVER_H

/* Runs libcurl transfers on the loop of the calling tasks. */

#include <resha/event.h>
#include <resha/http.h>

#include <curl/curl.h>

typedef struct rs_http_driver rs_http_driver;

/* A transfer, in the memory of its owner. */
typedef struct rs_http_transfer {
        CURL *easy;          /* the owner's; NULL after the driver had to give everything up */
        resha_duration read; /* nothing sent or received for that long: RESHA_HTTP_EREAD_TIMEOUT */
        resha_instant heard; /* when something came last; set by the owner's callbacks from rs_http_driver_now() */
        CURLcode result;     /* valid when done */
        bool done;           /* libcurl has finished with it */
        void (*tick)(struct rs_http_transfer *x); /* called once a second while it runs; the owner's */

        bool added;                           /* it is in the multi handle */
        resha_event wake;                     /* done, or called to drive */
        resha_instant started;                /* when it was added */
        resha_instant idle;                   /* before this it cannot have been idle for too long; RESHA_NEVER */
        bool idled;                           /* it has */
        curl_off_t sent;                      /* bytes of the body sent when that was looked at last */
        struct rs_http_transfer *prev, *next; /* in the driver's list while running, not done */
} rs_http_transfer;

/* keep: connections to keep open while idle. 0, -ENOMEM, -EMFILE. */
int rs_http_driver_new(long keep, rs_http_driver **ret_driver);

/* A socket was opened for it, by a callback; and how many are open. */
void rs_http_driver_opened(rs_http_driver *d);
unsigned rs_http_driver_sockets(const rs_http_driver *d);

/* No transfer may be running. NULL is fine. */
void rs_http_driver_free(rs_http_driver *d);

/* Adds x, whose easy handle is ready and has x as CURLOPT_PRIVATE. 0, -ENOMEM, -EIO. Never suspends. */
int rs_http_driver_start(rs_http_driver *d, rs_http_transfer *x);

/* Waits until it is done; meanwhile drives all transfers if no other task does. 0, RESHA_HTTP_EREAD_TIMEOUT,
 * -ECANCELED, -EIO, -ENOMEM. [task] cancellation point */
RESHA_MUST int rs_http_driver_wait(rs_http_driver *d, rs_http_transfer *x);

/* Takes x out, done or not; then its easy handle is the owner's again. Never suspends. */
void rs_http_driver_stop(rs_http_driver *d, rs_http_transfer *x);

/* When the running callback was called, cheaply. */
resha_instant rs_http_driver_now(const rs_http_driver *d);

/* CURLOPT_CLOSESOCKETFUNCTION, with the driver as its data. */
int rs_http_driver_close_socket(void *driver, curl_socket_t fd);

#endif
