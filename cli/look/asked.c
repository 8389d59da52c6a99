/* SPDX-License-Identifier: MIT */

/* One table of options for all commands that look into programs; each option knows which commands take it. */

#include "asked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "nearest.h"
#include "screen.h"

enum { PS = 1, TREE = 2, TOP = 4, STACK = 8, TRACE = 16, STATS = 32, ALL = 63 };

static const struct {
        const char *name;
        unsigned bit;
        const char *words; /* beside options, for messages */
} commands[] = {
        { "ps", PS, "[PID]" },
        { "tree", TREE, "PID" },
        { "top", TOP, "PID" },
        { "stack", STACK, "PID [TASK]" },
        { "trace", TRACE, "PID -o FILE" },
        { "stats", STATS, "PID" },
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

enum kind { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_TIME };

struct option {
        const char *name;
        char letter;
        enum kind kind;
        unsigned of; /* commands */
        size_t offset;
};

#define AT(member) offsetof(struct asked, member)

static const struct option table[] = {
        { "all", 'a', KIND_FLAG, PS | TREE | STACK, AT(all) },
        { "handles", 0, KIND_FLAG, PS, AT(handles) },
        { "places", 0, KIND_FLAG, PS, AT(places) },
        { "objects", 0, KIND_FLAG, PS, AT(objects) },
        { "json", 0, KIND_FLAG, PS | TREE | TOP | STACK, AT(json) },
        { "rounds", 'n', KIND_COUNT, TOP, AT(rounds) },
        { "delay", 'd', KIND_TIME, TOP, AT(time) },
        { "output", 'o', KIND_TEXT, TRACE, AT(output) },
        { "time", 't', KIND_TIME, TRACE, AT(time) },
        { "force", 'f', KIND_FLAG, TRACE, AT(force) },
        { "help", 'h', KIND_FLAG, ALL, AT(help) },
        { "version", 'V', KIND_FLAG, ALL, AT(version) },
};

enum { N_OPTIONS = sizeof table / sizeof table[0] };

static unsigned bit_of(const char *command)
{
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i].name, command) == 0)
                        return commands[i].bit;
        return 0;
}

static const char *words_of(const char *command)
{
        for (size_t i = 0; i < N_COMMANDS; i++)
                if (strcmp(commands[i].name, command) == 0)
                        return commands[i].words;
        return "";
}

const char *asked_option(const char *command, size_t i)
{
        for (size_t k = 0; k < N_OPTIONS; k++)
                if ((table[k].of & bit_of(command)) && i-- == 0)
                        return table[k].name;
        return NULL;
}

static const struct option *find(const struct asked *a, const char *word, size_t size)
{
        for (size_t i = 0; i < N_OPTIONS; i++) {
                const struct option *o = &table[i];
                bool named = word[1] == '-' ? strlen(o->name) == size - 2 && memcmp(o->name, word + 2, size - 2) == 0
                                            : o->letter && o->letter == word[1];
                if (named && (o->of & bit_of(a->command)))
                        return o;
        }
        return NULL;
}

static int unknown(const struct asked *a, const char *word, size_t size, struct text *problem)
{
        struct nearest n;
        nearest_init(&n, word + 2, word[1] == '-' ? size - 2 : 0);
        for (size_t i = 0; word[1] == '-' && i < N_OPTIONS; i++)
                if (table[i].of & bit_of(a->command))
                        nearest_try(&n, table[i].name);
        TEXT(shown);
        text_add(&shown, word, size < 40 ? size : 40);
        text_puts(problem, "unknown option '");
        screen_add(&(struct screen){ .ascii = true }, problem, text_string(&shown));
        if (n.best)
                text_printf(problem, "'; did you mean '--%s'?", n.best);
        else
                text_printf(problem, "'; see resha %s --help", a->command);
        return -EINVAL;
}

static int store(struct asked *a, const struct option *o, const char *value, struct text *problem)
{
        char *at = (char *)a + o->offset;
        int rc = 0;
        switch (o->kind) {
        case KIND_FLAG: *(bool *)at = true; break;
        case KIND_TEXT:
                *(const char **)(void *)at = value;
                rc = *value ? 0 : -EINVAL;
                break;
        case KIND_COUNT: rc = number_count(value, 1, UINT32_MAX, (uint64_t *)(void *)at); break;
        case KIND_TIME: rc = number_time(value, (resha_duration *)(void *)at); break;
        }
        if (rc < 0)
                text_printf(problem, "--%s %.40s: %s", o->name, *value ? value : "''",
                            o->kind == KIND_COUNT  ? "a whole number from 1 is needed"
                            : o->kind == KIND_TIME ? "a time is needed, as 500ms, 10s or 5m"
                                                   : "must not be empty");
        return rc;
}

/* An option at argv[*i], and its value. */
static int parse_option(struct asked *a, int argc, char **argv, int *i, struct text *problem)
{
        const char *word = argv[*i], *value = NULL;
        bool is_long = word[1] == '-';
        size_t size = is_long ? strcspn(word, "=") : 2;
        const struct option *o = find(a, word, size);
        if (!o)
                return unknown(a, word, size, problem);
        if (word[size])
                value = word + size + is_long;
        if (o->kind == KIND_FLAG && value) {
                text_printf(problem, "--%s takes no value; give short options one by one", o->name);
                return -EINVAL;
        }
        if (o->kind != KIND_FLAG && !value) {
                if (*i + 1 == argc) {
                        text_printf(problem, "--%s needs a value", o->name);
                        return -EINVAL;
                }
                value = argv[++*i];
        }
        return store(a, o, value ? value : "", problem);
}

static int bad_word(const struct asked *a, const char *what, const char *word, struct text *problem)
{
        TEXT(shown);
        text_add(&shown, word, strnlen(word, 40));
        text_puts(problem, what);
        text_puts(problem, " '");
        screen_add(&(struct screen){ .ascii = true }, problem, text_string(&shown));
        text_printf(problem, "': resha %s %s", a->command, words_of(a->command));
        return -EINVAL;
}

/* TASK, or LOOP.TASK. */
static int parse_task(struct asked *a, const char *word, struct text *problem)
{
        const char *dot = strchr(word, '.');
        char loop[16] = "";
        uint64_t l = 0, t;
        if (dot)
                snprintf(loop, sizeof loop, "%.*s", (int)(dot - word), word);
        if ((dot && number_count(loop, 1, UINT32_MAX, &l) < 0) ||
            number_count(dot ? dot + 1 : word, 1, UINT32_MAX, &t) < 0)
                return bad_word(a, "a task is a number, or LOOP.NUMBER, not", word, problem);
        a->loop = (uint32_t)l;
        a->task = (uint32_t)t;
        return 0;
}

static int parse_word(struct asked *a, const char *word, struct text *problem)
{
        uint64_t n;
        if (a->pid && !a->task && bit_of(a->command) == STACK)
                return parse_task(a, word, problem);
        if (a->pid)
                return bad_word(a, "one word too many,", word, problem);
        if (number_count(word, 1, INT32_MAX, &n) < 0)
                return bad_word(a, "a process is a number, not", word, problem);
        a->pid = (int)n;
        return 0;
}

int asked_parse(struct asked *a, const char *command, int argc, char **argv, struct text *ret_problem)
{
        bool only_words = false;
        *a = (struct asked){ .command = command, .time = bit_of(command) == TOP ? RESHA_S(1) : RESHA_S(5) };
        for (int i = 0; i < argc; i++) {
                const char *word = argv[i];
                int rc = 0;
                if (!only_words && strcmp(word, "--") == 0)
                        only_words = true;
                else if (!only_words && word[0] == '-' && word[1])
                        rc = parse_option(a, argc, argv, &i, ret_problem);
                else
                        rc = parse_word(a, word, ret_problem);
                if (rc < 0)
                        return -EINVAL;
        }
        if (a->help || a->version)
                return 0;
        if (!a->pid && bit_of(command) != PS)
                text_printf(ret_problem, "which process? resha %s %s; resha ps lists those that can be asked", command,
                            words_of(command));
        else if (!a->output && bit_of(command) == TRACE)
                text_puts(ret_problem, "where to? resha trace PID -o FILE; '-' is stdout");
        else if (bit_of(command) & (TOP | TRACE) && (a->time.ns < 10000000 || a->time.ns > RESHA_S(600).ns))
                text_puts(ret_problem, "the time is 10ms at least and 10m at most");
        return ret_problem->len ? -EINVAL : 0;
}

void asked_say(const struct asked *a, const struct text *line)
{
        TEXT(t);
        text_printf(&t, "resha %s: %s\n", a->command, line->failed ? "out of memory" : text_string(line));
        fputs(text_string(&t), stderr);
}

int asked_write(const struct asked *a, const struct text *t)
{
        TEXT(line);
        int rc = text_write(t, STDOUT_FILENO);
        if (rc == 0 || rc == -EPIPE)
                return rc ? EXIT_CANNOT_WRITE : EXIT_DONE;
        text_printf(&line, "cannot write: %s", strerror(-rc));
        asked_say(a, &line);
        return rc == -ENOMEM ? EXIT_SOME_FAILED : EXIT_CANNOT_WRITE;
}

bool asked_begin(struct asked *a, const char *command, const char *help, int argc, char **argv, int *ret_code)
{
        TEXT(problem);
        TEXT(out);
        signal(SIGPIPE, SIG_IGN);
        int rc = asked_parse(a, command, argc, argv, &problem);
        if (rc < 0 || problem.failed) {
                asked_say(a, &problem);
                *ret_code = EXIT_USAGE;
                return false;
        }
        if (!a->help && !a->version)
                return true;
        if (a->help)
                text_puts(&out, help);
        else
                text_printf(&out, "resha %s\n", resha_version());
        *ret_code = asked_write(a, &out);
        return false;
}
