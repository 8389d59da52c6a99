/* SPDX-License-Identifier: MIT */

/* The options of `resha fetch`. One table names each option once, with its kind, its limits and where its value goes;
 * the command line and the lines of a preset are read through it, so that whatever can be asked for can also be written
 * down in a file. */

#include "options.h"

#include <stdio.h>
#include <string.h>

#include <resha/alloc.h>

#include "header.h"
#include "nearest.h"
#include "url.h"

enum kind { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_TIME, KIND_SIZE, KIND_RATE, KIND_HEADER, KIND_URL };

struct option {
        const char *name;
        char letter;
        bool file_only; /* for presets and --config */
        enum kind kind;
        size_t offset;
        uint64_t min, max; /* of KIND_COUNT */
};

#define AT(member) offsetof(struct options, member)

static const struct option table[] = {
        { .name = "input", .letter = 'i', .kind = KIND_TEXT, .offset = AT(input) },
        { .name = "each", .kind = KIND_TEXT, .offset = AT(each) },
        { .name = "ids", .kind = KIND_TEXT, .offset = AT(ids) },
        { .name = "first", .kind = KIND_COUNT, .offset = AT(first), .min = 1, .max = UINT64_MAX },
        { .name = "top", .kind = KIND_COUNT, .offset = AT(first), .min = 1, .max = UINT64_MAX },
        { .name = "base-url", .kind = KIND_TEXT, .offset = AT(base_url) },
        { .name = "header", .letter = 'H', .kind = KIND_HEADER },
        { .name = "db", .kind = KIND_TEXT, .offset = AT(db) },
        { .name = "table", .kind = KIND_TEXT, .offset = AT(table) },
        { .name = "key", .kind = KIND_TEXT, .offset = AT(key) },
        { .name = "columns", .kind = KIND_TEXT, .offset = AT(columns) },
        { .name = "output", .letter = 'o', .kind = KIND_TEXT, .offset = AT(output) },
        { .name = "concurrency",
          .letter = 'c',
          .kind = KIND_COUNT,
          .offset = AT(concurrency),
          .min = 1,
          .max = MAX_CONCURRENCY },
        { .name = "rate", .kind = KIND_RATE },
        { .name = "timeout", .kind = KIND_TIME, .offset = AT(timeout) },
        { .name = "connect-timeout", .kind = KIND_TIME, .offset = AT(connect_timeout) },
        { .name = "retries", .kind = KIND_COUNT, .offset = AT(retries), .min = 0, .max = 100 },
        { .name = "retry-for", .kind = KIND_TIME, .offset = AT(retry_for) },
        { .name = "max-body", .kind = KIND_SIZE, .offset = AT(max_body) },
        { .name = "summary", .kind = KIND_TEXT, .offset = AT(summary) },
        { .name = "quiet", .letter = 'q', .kind = KIND_FLAG, .offset = AT(quiet) },
        { .name = "verbose", .letter = 'v', .kind = KIND_FLAG, .offset = AT(verbose) },
        { .name = "help", .letter = 'h', .kind = KIND_FLAG, .offset = AT(help) },
        { .name = "version", .letter = 'V', .kind = KIND_FLAG, .offset = AT(version) },
        { .name = "url", .file_only = true, .kind = KIND_URL },
        { .name = "closing", .file_only = true, .kind = KIND_TEXT, .offset = AT(closing_line) },
        { .name = "closing-query", .file_only = true, .kind = KIND_TEXT, .offset = AT(closing_query) },
};

enum { N_OPTIONS = sizeof table / sizeof table[0] };

_Static_assert(N_OPTIONS <= 64, "options.given has a bit for each");

void options_init(struct options *o)
{
        *o = (struct options){
                .concurrency = 8,
                .retries = 4,
                .timeout = RESHA_S(30),
                .connect_timeout = RESHA_S(10),
                .retry_for = RESHA_S(300),
                .max_body = 16 << 20,
                .key = "id",
        };
}

struct kept {
        struct kept *next;
        char data[];
};

void *options_keep(struct options *o, size_t size)
{
        struct kept *k = resha_malloc(sizeof *k + size);
        if (!k)
                return NULL;
        k->next = o->kept;
        o->kept = k;
        return k->data;
}

void options_done(struct options *o)
{
        for (struct kept *k = o->kept, *next; k; k = next) {
                next = k->next;
                resha_free(k);
        }
        resha_free(o->urls);
        *o = (struct options){ .urls = NULL };
}

static int add_url(struct options *o, const char *url)
{
        const char **urls = resha_realloc(o->urls, (o->n_urls + 1) * sizeof *urls);
        if (!urls)
                return -ENOMEM;
        o->urls = urls;
        urls[o->n_urls++] = url;
        return 0;
}

static int add_rate(struct options *o, const char *value)
{
        if (o->n_rates == MAX_RATES)
                return -E2BIG;
        int rc = number_rate(value, &o->rates[o->n_rates]);
        if (rc == 0)
                o->n_rates++;
        return rc;
}

/* Stores a value by its kind. 0 or negative; what is wrong is said by explain(). */
static int store(struct options *o, const struct option *d, const char *value, struct text *problem)
{
        char *at = (char *)o + d->offset;
        switch (d->kind) {
        case KIND_FLAG: *(bool *)at = true; return 0;
        case KIND_TEXT: *(const char **)at = value; return *value ? 0 : -EINVAL;
        case KIND_COUNT: return number_count(value, d->min, d->max, (uint64_t *)at);
        case KIND_TIME: return number_time(value, (resha_duration *)at);
        case KIND_SIZE: return number_size(value, (uint64_t *)at);
        case KIND_RATE: return add_rate(o, value);
        case KIND_HEADER: return header_add(o, value, problem);
        case KIND_URL: return add_url(o, value);
        }
        return -EINVAL;
}

static void explain(const struct option *d, const char *label, const char *value, struct text *t)
{
        if (t->len) /* said already */
                return;
        text_printf(t, "%s %s: ", label, *value ? value : "''");
        switch (d->kind) {
        case KIND_COUNT:
                text_printf(t, "a whole number from %llu", (unsigned long long)d->min);
                if (d->max != UINT64_MAX)
                        text_printf(t, " to %llu", (unsigned long long)d->max);
                text_puts(t, " is needed");
                break;
        case KIND_TIME: text_puts(t, "a time is needed, as 30s, 500ms, 5m or 2h"); break;
        case KIND_SIZE: text_puts(t, "a size is needed, as 500k, 16M or 1G"); break;
        case KIND_RATE:
                text_printf(t, "a rate is needed, as 10/s, 100/m or 5000/h, at most %d of them", MAX_RATES);
                break;
        default: text_puts(t, "must not be empty"); break;
        }
}

static const struct option *find_long(const char *name, size_t size, bool from_file)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (strlen(table[i].name) == size && memcmp(table[i].name, name, size) == 0 &&
                    (from_file || !table[i].file_only))
                        return &table[i];
        return NULL;
}

const char *options_name(size_t i)
{
        for (size_t k = 0; k < N_OPTIONS; k++)
                if (!table[k].file_only && i-- == 0)
                        return table[k].name;
        return NULL;
}

bool options_has(const char *name)
{
        return find_long(name, strlen(name), false) != NULL;
}

static const struct option *find_letter(char letter)
{
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (table[i].letter == letter && letter)
                        return &table[i];
        return NULL;
}

static int unknown(const char *dashes, const char *name, size_t size, bool from_file, struct text *t)
{
        struct nearest n;
        nearest_init(&n, name, size);
        for (size_t i = 0; i < N_OPTIONS; i++)
                if (from_file || !table[i].file_only)
                        nearest_try(&n, table[i].name);
        text_printf(t, "unknown option '%s%.*s'", dashes, (int)(size < 40 ? size : 40), name);
        if (n.best)
                text_printf(t, "; did you mean '%s%s'?", dashes, n.best);
        return -EINVAL;
}

/* One option from argv[i]; *i moves over what it takes. */
static int parse_one(struct options *o, int argc, char **argv, int *i, struct text *problem)
{
        char *word = argv[*i], *value = NULL;
        char label[48];
        const struct option *d;
        if (word[1] == '-') {
                size_t size = strcspn(word + 2, "=");
                d = find_long(word + 2, size, false);
                if (!d)
                        return unknown("--", word + 2, size, false, problem);
                snprintf(label, sizeof label, "--%s", d->name);
                value = word[2 + size] ? word + 3 + size : NULL;
        } else {
                d = find_letter(word[1]);
                snprintf(label, sizeof label, "-%c", word[1]);
                if (!d) {
                        text_printf(problem, "unknown option '%s'; see resha fetch --help", label);
                        return -EINVAL;
                }
                value = word[2] ? word + 2 : NULL;
        }
        if (d->kind == KIND_FLAG && value) {
                text_printf(problem, "%s takes no value ('%s')", label, value);
                return -EINVAL;
        }
        if (d->kind != KIND_FLAG && !value) {
                if (*i + 1 == argc) {
                        text_printf(problem, "%s needs a value", label);
                        return -EINVAL;
                }
                value = argv[++*i];
        }
        if (d->offset == AT(input) && o->input) { /* the last one would hold, and a whole list be left out */
                text_printf(problem, "%s %s: one list is read, and '%s' is it; cat them together with -i -", label,
                            value, o->input);
                return -EINVAL;
        }
        int rc = store(o, d, value, problem);
        if (rc < 0)
                explain(d, label, value, problem);
        if (d->kind == KIND_HEADER)
                header_wipe(value);
        for (size_t k = 0; k < N_OPTIONS; k++) /* --top is --first */
                if (&table[k] == d || (d->offset && table[k].offset == d->offset))
                        o->given |= UINT64_C(1) << k;
        return rc < 0 ? -EINVAL : 0;
}

int options_parse(struct options *o, int argc, char **argv, struct text *ret_problem)
{
        bool only_words = false;
        for (int i = 0; i < argc; i++) {
                int rc = 0;
                if (only_words || argv[i][0] != '-')
                        rc = add_url(o, argv[i]);
                else if (strcmp(argv[i], "--") == 0)
                        only_words = true;
                else if (strcmp(argv[i], "-") == 0) {
                        text_puts(ret_problem, "'-' alone is no URL; -i - reads a list from stdin");
                        rc = -EINVAL;
                } else
                        rc = parse_one(o, argc, argv, &i, ret_problem);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

int options_set(struct options *o, const char *name, const char *value, struct text *ret_problem)
{
        const struct option *d = find_long(name, strlen(name), true);
        if (!d)
                return unknown("", name, strlen(name), true, ret_problem);
        uint64_t bit = UINT64_C(1) << (d - table);
        if (o->given & bit)
                return 0;
        if ((d->kind == KIND_FLAG) != (value == NULL)) {
                text_printf(ret_problem, value ? "'%s' takes no value" : "'%s' needs a value", name);
                return -EINVAL;
        }
        int rc = store(o, d, value, ret_problem);
        if (rc < 0)
                explain(d, name, value, ret_problem);
        return rc < 0 ? -EINVAL : 0;
}

static bool has_hole(const struct options *o)
{
        for (size_t i = 0; i < o->n_urls; i++)
                if (strstr(o->urls[i], "{}"))
                        return true;
        return false;
}

int options_check(const struct options *o, struct text *ret_problem)
{
        size_t from = ret_problem->len;
        if (o->n_urls == 0 && !o->input)
                text_puts(ret_problem, "nothing to fetch: give URLs, -i LIST or a preset; see resha fetch --help");
        else if (o->each && (o->n_urls != 1 || o->input || !has_hole(o)))
                text_puts(ret_problem, "--each needs exactly one URL, with {} where the id goes");
        else if (!o->each && has_hole(o))
                text_puts(ret_problem, "{} in a URL needs --each, which says where the ids are");
        else if (o->ids && !o->each)
                text_puts(ret_problem, "--ids says where the ids are in what --each gives: --each is missing");
        else if (o->ids && o->ids[0] != '$')
                text_printf(ret_problem, "--ids %s: begins with $, as '$.items[*].id'", o->ids);
        else if (o->each && strncmp(o->each, "sql:", 4) == 0 && !o->db)
                text_puts(ret_problem, "--each sql:... asks the database of --db, which is missing");
        else if (o->base_url && url_problem(o->base_url, strlen(o->base_url))) {
                text_puts(ret_problem, "--base-url ");
                url_add_public(ret_problem, o->base_url, strlen(o->base_url));
                text_printf(ret_problem, ": %s", url_problem(o->base_url, strlen(o->base_url)));
        } else if (o->table && !o->columns)
                text_puts(ret_problem, "--table needs --columns, which says what its rows are made of");
        else if (o->columns && !o->preset && !o->db)
                text_puts(ret_problem, "--columns and --table make rows in a database: --db FILE is missing");
        return ret_problem->len == from ? 0 : -EINVAL;
}

/* A word as a shell would need it. */
static void add_word(struct text *t, const char *word)
{
        text_putc(t, ' ');
        if (*word &&
            strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:=,@%+") == strlen(word)) {
                text_puts(t, word);
                return;
        }
        text_putc(t, '\'');
        for (; *word; word++) {
                if (*word == '\'')
                        text_puts(t, "'\\''");
                else
                        text_putc(t, *word);
        }
        text_putc(t, '\'');
}

static void add_public_word(struct text *t, const char *url)
{
        TEXT(public);
        url_add_public(&public, url, strlen(url));
        add_word(t, text_string(&public));
}

void options_add_command(const struct options *o, struct text *t)
{
        const struct {
                const char *name, *value;
        } named[] = {
                { "--input", o->input },
                { "--ids", o->ids },
                { "--table", o->table },
                { "--columns", o->columns },
                { "--key", o->columns ? o->key : NULL },
        };
        text_puts(t, "resha fetch");
        for (size_t i = 0; i < o->n_urls; i++)
                add_public_word(t, o->urls[i]);
        if (o->each) {
                text_puts(t, " --each");
                add_public_word(t, o->each);
        }
        if (o->base_url) {
                text_puts(t, " --base-url");
                add_public_word(t, o->base_url);
        }
        for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
                if (!named[i].value)
                        continue;
                text_putc(t, ' ');
                text_puts(t, named[i].name);
                add_word(t, named[i].value);
        }
        if (o->first)
                text_printf(t, " --first %llu", (unsigned long long)o->first);
}

void options_fingerprint(const char *command, char ret_hex[17])
{
        uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
        for (; *command; command++)
                h = (h ^ (unsigned char)*command) * UINT64_C(0x100000001b3);
        snprintf(ret_hex, 17, "%016llx", (unsigned long long)h);
}
