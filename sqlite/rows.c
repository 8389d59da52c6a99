/* SPDX-License-Identifier: MIT */
/* Results: rows that were read, in an arena of their own.
 *
 * A row is an array of cells; `index` has a pointer to each. Cells are taken from the low end of the newest block,
 * text and blobs from its high end, so that nothing needs padding and both of a row are near one another. Blocks
 * double up to 1 MiB. What is larger than a quarter of the block gets a block of its own behind the newest, so that
 * no large rest is wasted. Blocks never move: cells point into them.
 *
 * Invariants: low <= high; both lie in the newest block; low is aligned for a cell; used <= limit unless the add that
 * passed it has failed. Filled on the worker, read on any thread, by nobody at the same time. */

#include "internal.h"

#include <assert.h>
#include <string.h>

#include <resha/alloc.h>

#define BLOCK_FIRST ((size_t)4096)
#define BLOCK_LAST ((size_t)1 << 20)

struct cell {
        union {
                int64_t integer;
                double real;
                const char *bytes; /* terminated */
        } as;
        uint32_t size; /* of bytes: SQLite's values are shorter than 2 GiB */
        uint32_t type; /* enum resha_value_type */
};

struct block {
        struct block *next;
        size_t size; /* of memory */
        struct cell memory[];
};

struct resha_rows {
        size_t count, columns;
        struct cell **index; /* count of capacity */
        size_t capacity;
        const char **names;
        struct block *blocks; /* newest first */
        char *low, *high;
        size_t used, limit;
};

/* A block for `need` bytes: the new newest one, or one behind it if `own`. */
static struct block *block_new(resha_rows *rows, size_t need, bool own)
{
        size_t size = need;

        if (!own) {
                size = rows->blocks ? rows->blocks->size * 2 : BLOCK_FIRST;
                size = size > BLOCK_LAST ? BLOCK_LAST : size;
                size = size < need ? need : size;
        }
        size = (size + sizeof(struct cell) - 1) / sizeof(struct cell) * sizeof(struct cell);
        struct block *b = resha_malloc(sizeof *b + size);
        if (!b)
                return NULL;
        b->size = size;
        if (own && rows->blocks) {
                b->next = rows->blocks->next;
                rows->blocks->next = b;
        } else {
                b->next = rows->blocks;
                rows->blocks = b;
                rows->low = (char *)b->memory;
                rows->high = rows->low + size;
        }
        return b;
}

static size_t room(const resha_rows *rows)
{
        return (size_t)(rows->high - rows->low);
}

/* Aligned for cells and pointers. */
static void *take_low(resha_rows *rows, size_t size)
{
        size = (size + sizeof(struct cell) - 1) / sizeof(struct cell) * sizeof(struct cell);
        rows->used += size;
        if ((!rows->blocks || room(rows) < size) && !block_new(rows, size, false))
                return NULL;
        void *p = rows->low;
        rows->low += size;
        return p;
}

/* Copies `size` bytes and terminates them. */
static const char *take_bytes(resha_rows *rows, const void *from, size_t size)
{
        size_t need = size + 1;
        char *p;

        rows->used += need;
        if (room(rows) >= need) {
                p = rows->high -= need;
        } else if (rows->blocks && need > rows->blocks->size / 4) {
                struct block *b = block_new(rows, need, true);
                if (!b)
                        return NULL;
                p = (char *)b->memory;
        } else {
                if (!block_new(rows, need, false))
                        return NULL;
                p = rows->high -= need;
        }
        if (size > 0)
                memcpy(p, from, size);
        p[size] = '\0';
        return p;
}

int rs_sqlite_rows_new(sqlite3_stmt *stmt, size_t max_bytes, resha_rows **ret_rows)
{
        resha_rows *rows = resha_calloc(1, sizeof *rows);
        if (!rows)
                return -ENOMEM;
        rows->columns = (size_t)sqlite3_column_count(stmt);
        rows->limit = max_bytes;
        rows->names = take_low(rows, rows->columns * sizeof *rows->names);
        if (!rows->names)
                goto no_memory;
        for (size_t i = 0; i < rows->columns; i++) {
                const char *name = sqlite3_column_name(stmt, (int)i);
                if (!name)
                        goto no_memory;
                rows->names[i] = take_bytes(rows, name, strlen(name));
                if (!rows->names[i])
                        goto no_memory;
        }
        *ret_rows = rows;
        return 0;
no_memory:
        resha_rows_free(rows);
        return -ENOMEM;
}

static int fill_bytes(resha_rows *rows, struct cell *c, const void *from, int size)
{
        c->size = (uint32_t)size;
        if (rows->used + (size_t)size > rows->limit)
                return RESHA_SQLITE_ERESULT_SIZE; /* before the copy, not after */
        c->as.bytes = take_bytes(rows, from, (size_t)size);
        return c->as.bytes ? 0 : -ENOMEM;
}

static int fill(resha_rows *rows, struct cell *c, sqlite3_stmt *stmt, int column)
{
        const void *from;

        switch (sqlite3_column_type(stmt, column)) {
        case SQLITE_INTEGER:
                c->type = RESHA_VALUE_INT;
                c->as.integer = sqlite3_column_int64(stmt, column);
                return 0;
        case SQLITE_FLOAT:
                c->type = RESHA_VALUE_REAL;
                c->as.real = sqlite3_column_double(stmt, column);
                return 0;
        case SQLITE_TEXT:
                c->type = RESHA_VALUE_TEXT;
                from = sqlite3_column_text(stmt, column);
                if (!from) /* of a file in UTF-16: no memory to convert it */
                        return -ENOMEM;
                return fill_bytes(rows, c, from, sqlite3_column_bytes(stmt, column));
        case SQLITE_BLOB:
                c->type = RESHA_VALUE_BLOB;
                from = sqlite3_column_blob(stmt, column); /* NULL if empty */
                return fill_bytes(rows, c, from, sqlite3_column_bytes(stmt, column));
        default:
                c->type = RESHA_VALUE_NULL;
                c->as.integer = 0;
                return 0;
        }
}

static int grow_index(resha_rows *rows)
{
        size_t capacity = rows->capacity ? rows->capacity * 2 : 16;
        struct cell **index = resha_realloc(rows->index, capacity * sizeof *index);
        if (!index)
                return -ENOMEM;
        rows->index = index;
        rows->capacity = capacity;
        return 0;
}

int rs_sqlite_rows_add(resha_rows *rows, sqlite3_stmt *stmt)
{
        if (rows->count == rows->capacity && grow_index(rows) < 0)
                return -ENOMEM;
        rows->used += sizeof *rows->index;
        struct cell *row = take_low(rows, rows->columns * sizeof *row);
        if (!row)
                return -ENOMEM;
        for (size_t i = 0; i < rows->columns; i++) {
                int rc = fill(rows, &row[i], stmt, (int)i);
                if (rc < 0)
                        return rc;
        }
        if (rows->used > rows->limit)
                return RESHA_SQLITE_ERESULT_SIZE;
        assert(rows->low <= rows->high);
        rows->index[rows->count++] = row;
        return 0;
}

size_t rs_sqlite_rows_bytes(const resha_rows *rows)
{
        return rows->used;
}

void resha_rows_free(resha_rows *rows)
{
        if (!rows)
                return;
        for (struct block *b = rows->blocks, *next; b; b = next) {
                next = b->next;
                resha_free(b);
        }
        resha_free(rows->index);
        resha_free(rows);
}

void resha_rows_freep(resha_rows **rows)
{
        resha_rows_free(*rows);
        *rows = NULL;
}

size_t resha_rows_count(const resha_rows *rows)
{
        return rows->count;
}

size_t resha_rows_columns(const resha_rows *rows)
{
        return rows->columns;
}

const char *resha_rows_name(const resha_rows *rows, size_t column)
{
        return column < rows->columns ? rows->names[column] : NULL;
}

int resha_rows_column(const resha_rows *rows, const char *name)
{
        for (size_t i = 0; i < rows->columns; i++)
                if (sqlite3_stricmp(rows->names[i], name) == 0)
                        return (int)i;
        return -ENOENT;
}

static const struct cell *cell_at(const resha_rows *rows, size_t row, size_t column)
{
        static const struct cell null = { .type = RESHA_VALUE_NULL };

        return row < rows->count && column < rows->columns ? &rows->index[row][column] : &null;
}

static bool has_bytes(const struct cell *c)
{
        return c->type == RESHA_VALUE_TEXT || c->type == RESHA_VALUE_BLOB;
}

resha_value resha_rows_value(const resha_rows *rows, size_t row, size_t column)
{
        const struct cell *c = cell_at(rows, row, column);

        switch (c->type) {
        case RESHA_VALUE_INT: return RESHA_INT(c->as.integer);
        case RESHA_VALUE_REAL: return RESHA_REAL(c->as.real);
        case RESHA_VALUE_TEXT: return RESHA_TEXT_N(c->as.bytes, c->size);
        case RESHA_VALUE_BLOB: return RESHA_BLOB(c->as.bytes, c->size);
        default: return RESHA_NULL;
        }
}

static int64_t to_integer(double real)
{
        if (real >= 9223372036854775808.0) /* the smallest that does not fit: 2^63 */
                return INT64_MAX;
        return real >= -9223372036854775808.0 ? (int64_t)real : INT64_MIN;
}

int64_t resha_rows_int(const resha_rows *rows, size_t row, size_t column)
{
        const struct cell *c = cell_at(rows, row, column);

        if (c->type == RESHA_VALUE_REAL)
                return to_integer(c->as.real);
        return c->type == RESHA_VALUE_INT ? c->as.integer : 0;
}

double resha_rows_real(const resha_rows *rows, size_t row, size_t column)
{
        const struct cell *c = cell_at(rows, row, column);

        if (c->type == RESHA_VALUE_INT)
                return (double)c->as.integer;
        return c->type == RESHA_VALUE_REAL ? c->as.real : 0.0;
}

const char *resha_rows_text(const resha_rows *rows, size_t row, size_t column)
{
        const struct cell *c = cell_at(rows, row, column);

        return has_bytes(c) ? c->as.bytes : NULL;
}

const void *resha_rows_blob(const resha_rows *rows, size_t row, size_t column, size_t *ret_size)
{
        const struct cell *c = cell_at(rows, row, column);

        if (ret_size)
                *ret_size = has_bytes(c) ? c->size : 0;
        return has_bytes(c) ? c->as.bytes : NULL;
}

bool resha_rows_is_null(const resha_rows *rows, size_t row, size_t column)
{
        return cell_at(rows, row, column)->type == RESHA_VALUE_NULL;
}
