/* SPDX-License-Identifier: MIT */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

/* One line of an inspector's answer: a flat JSON object. Whatever comes, nothing outside of the line is touched. */

#include <resha/base.h>

enum { RECORD_FIELDS = 64, RECORD_LIST = 8 };

enum field_kind { FIELD_OTHER, FIELD_TEXT, FIELD_NUMBER, FIELD_BOOL, FIELD_LIST };

struct field {
        enum field_kind kind;
        const char *name, *text; /* text ends with a 0, and has no other */
        int64_t number;          /* also of a bool; fractions are cut off */
        int64_t list[RECORD_LIST];
        unsigned n_list; /* numbers of the list that found a place */
};

struct record {
        struct field fields[RECORD_FIELDS]; /* those behind are skipped */
        unsigned n_fields;
        unsigned asked; /* where the last name was found: fields are asked for in the order in which they come */
};

/* Reads a line without its newline, line[size] being writable; texts are unescaped in place and stay in it. What is
 * neither text, number, bool nor list of numbers is FIELD_OTHER. 0; -EINVAL: it is no JSON object. */
int record_parse(struct record *r, char *line, size_t size);

/* The field of a name and kind, or NULL. */
const struct field *record_find(struct record *r, const char *name, enum field_kind kind);

/* Its text, or "" where there is none. */
const char *record_text(struct record *r, const char *name);

/* Its number, or `other` where there is none. */
int64_t record_number(struct record *r, const char *name, int64_t other);

/* An address "0x..." as a number, 0 where there is none. */
uint64_t record_address(struct record *r, const char *name);

#endif
