/* SPDX-License-Identifier: MIT */
#ifndef RESHA_SHOWN_H
#define RESHA_SHOWN_H

/* What a library on top of this one says of itself: what a task does just now, and objects with their figures. All of
 * it is seen from outside (the `resha` command, resha_dump()), and figures in statistics (stats.h) as well. It costs a
 * store or two where it is said; texts are made when somebody looks.
 *
 *     int fetch_page(struct client *c, const char *host)
 *     {
 *             RESHA_DOING(d);
 *             resha_doing_begin(&d, "mirror", host); // from here to the end of the block
 *             d.phase = "connects";
 *             ...
 *             d.phase = "waits for the answer";      // "mirror example.org: waits for the answer"
 *             c->figures[REQUESTS]++;                // an element of the array that resha_shown_begin() was given
 *     } */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* What a task does. In the block that declares it; inner ones stand before outer ones. The fields may be changed at any
 * time, on the loop's thread, by other tasks too. */
typedef struct resha_doing {
        const char *what;  /* static, or valid until the block is left: "http" */
        const char *text;  /* the same: of what: "example.org:443"; NULL: nothing more to say. No secrets */
        const char *phase; /* the same: "connects"; NULL: one phase only */
        unsigned attempt;  /* from 1; 0: not told */
        struct resha_doing *_outer;
        void *_task;
        uint64_t _reserved[2];
} resha_doing;

/* Declares one that ends, at the latest, when its block is left. */
#define RESHA_DOING(d) resha_doing d __attribute__((cleanup(resha_doing_end), unused)) = { 0 }

/* The current task does this, until the end or the end of the block. Outside of tasks: nothing. [loop] */
RESHA_API void resha_doing_begin(resha_doing *d, const char *what, const char *text);

/* It is over; those in it go on. Nothing before begin or after end. [loop] */
RESHA_API void resha_doing_end(resha_doing *d);

/* What the current task does, the innermost; NULL: nothing was said. [loop] */
RESHA_API const resha_doing *resha_doing_current(void);

/* How figures of one name are taken together where objects of a kind have the same name (or none). */
enum resha_figure_type {
        RESHA_FIGURE_COUNTER = 1, /* only grows; the sum, of those that have ended in this loop, too */
        RESHA_FIGURE_GAUGE,       /* as it is now; the sum */
        RESHA_FIGURE_MOST,        /* the same; the largest */
};

/* What one figure of an object is. */
typedef struct resha_figure {
        const char *name; /* of the metric: letters, digits, _; "mirror_requests_total" */
        const char *help; /* one line */
        enum resha_figure_type type;
        bool seconds; /* the value is in nanoseconds, shown in seconds; such a name ends in _seconds */
} resha_figure;

enum { RESHA_FIGURES_MAX = 16, RESHA_DESCRIBE_MAX = 256 };

/* What objects of a kind have in common; static. */
typedef struct resha_shown_kind {
        const char *kind;            /* "mirror"; letters, digits, spaces, and what a person reads */
        const resha_figure *figures; /* [NULL: none] */
        size_t count;                /* of them, at most RESHA_FIGURES_MAX */
        const char *label;           /* of figures: what an object's name is there: "host" ["name"] */
        /* One line about it as it is now, as snprintf() does it; on the loop's thread, never waits [NULL: none] */
        void (*describe)(const void *object, char *ret_text, size_t size);
        /* Before figures are read, and by the end of an object with counters: brings those up to date that are kept
         * elsewhere; as `describe` [NULL: none] */
        void (*refresh)(void *object);
        uint64_t _reserved[2];
} resha_shown_kind;

/* An object that is shown, in the memory of its owner. Private; all zero before begin, where the end may come first. */
typedef struct resha_shown {
        uint64_t _[16];
} resha_shown;

/* The object is shown from now on, as one of the running loop. `name` may be NULL; it and `values` (`count` of the
 * kind; NULL for none) stay valid until the end. Who opened it, where and when, is noted: the function that called this
 * one's caller, `opened_by` being __builtin_return_address(0) there (NULL: not known). -EINVAL for a kind with a
 * reserved word that is not zero, or too many figures; -EPERM outside of a loop. [loop] */
RESHA_API int resha_shown_begin(resha_shown *s, const resha_shown_kind *kind, void *object, const char *name,
                                const uint64_t *values, const void *opened_by);

/* It is shown no more. Nothing before begin, after end, or when the loop has ended. Aborts on another thread than the
 * loop's. [loop] */
RESHA_API void resha_shown_end(resha_shown *s);

RESHA_END_DECLS
#endif
