/* SPDX-License-Identifier: MIT */
/* The intrusive list. */

#include "base/list.h"
#include "test.h"

struct item {
        int number;
        struct rs_node node;
};

static void note_all(const struct rs_list *l)
{
        const struct rs_node *before = NULL;

        for (const struct rs_node *n = l->first; n; n = n->next) {
                ASSERT_PTR(n->prev, before);
                note("%d", RS_CONTAINER(n, struct item, node)->number);
                before = n;
        }
        ASSERT_PTR(l->last, before);
}

TEST(list_all_zero_is_empty)
{
        struct rs_list l = { 0 };

        ASSERT_TRUE(rs_list_empty(&l));
        ASSERT_PTR(rs_list_pop(&l), NULL);
}

TEST(list_push_and_pop)
{
        struct rs_list l = { 0 };
        struct item i[4];

        for (int k = 0; k < 4; k++) {
                i[k].number = k;
                rs_list_push(&l, &i[k].node);
        }
        ASSERT_FALSE(rs_list_empty(&l));
        note_all(&l);
        ASSERT_STR(notes(), "0 1 2 3");
        for (int k = 0; k < 4; k++)
                ASSERT_PTR(rs_list_pop(&l), &i[k].node);
        ASSERT_TRUE(rs_list_empty(&l));
        ASSERT_PTR(l.last, NULL);
}

TEST(list_remove_everywhere)
{
        struct rs_list l = { 0 };
        struct item i[5];

        for (int k = 0; k < 5; k++) {
                i[k].number = k;
                rs_list_push(&l, &i[k].node);
        }
        rs_list_remove(&l, &i[2].node);
        note_all(&l);
        ASSERT_STR(notes(), "0 1 3 4");
        rs_list_remove(&l, &i[0].node);
        rs_list_remove(&l, &i[4].node);
        note_all(&l);
        ASSERT_STR(notes(), "1 3");
        ASSERT_PTR(i[4].node.prev, NULL);
        rs_list_push(&l, &i[0].node);
        note_all(&l);
        ASSERT_STR(notes(), "1 3 0");
        rs_list_remove(&l, &i[3].node);
        rs_list_remove(&l, &i[1].node);
        rs_list_remove(&l, &i[0].node);
        ASSERT_TRUE(rs_list_empty(&l));
}
