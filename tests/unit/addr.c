/* SPDX-License-Identifier: MIT */
/* Addresses as values: literals, text and back for every family, odd names, sockaddrs. */

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "test.h"

static const char *text_of(const resha_addr *a)
{
        static char text[RESHA_ADDR_TEXT_MAX];

        return resha_addr_format(a, text, sizeof text);
}

/* The text of what is read from a text; the name of the failure. */
static const char *scanned(const char *text)
{
        resha_addr a = { { 0 } };
        int rc = resha_addr_scan(text, &a);

        return rc < 0 ? resha_errname(rc) : text_of(&a);
}

static const char *parsed(const char *literal)
{
        resha_addr a;
        int rc = resha_addr_parse(literal, 80, &a);

        return rc < 0 ? resha_errname(rc) : text_of(&a);
}

#define ASSERT_SAME(text) ASSERT_STR(scanned(text), text)

TEST(literals_with_and_without_brackets)
{
        ASSERT_STR(parsed("127.0.0.1"), "127.0.0.1:80");
        ASSERT_STR(parsed("::1"), "[::1]:80");
        ASSERT_STR(parsed("[::1]"), "[::1]:80");
        ASSERT_STR(parsed("[fe80::1%lo]"), "[fe80::1%lo]:80");
        ASSERT_STR(parsed("2001:DB8:0:0::1"), "[2001:db8::1]:80");
        ASSERT_STR(parsed("::ffff:1.2.3.4"), "[::ffff:1.2.3.4]:80");
        static const char *const wrong[] = { "",
                                             "localhost",
                                             "1.2.3",
                                             "1.2.3.4.5",
                                             "256.1.1.1",
                                             "01.2.3.4",
                                             "[::1",
                                             "::1]",
                                             "[]",
                                             "[1.2.3.4]",
                                             "[::1]:80",
                                             "::1%",
                                             "::%lo%lo",
                                             "1:2:3",
                                             " ::1",
                                             "1.2.3.4 ",
                                             "fe80::1%no-such-zone" };
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
                ASSERT_STR(parsed(wrong[i]), "EINVAL");
        ASSERT_STR(parsed(NULL), "EINVAL");
}

/* A link-local address is none without its interface. */
TEST(a_zone_is_kept_by_name_and_by_number)
{
        resha_addr a, b;

        ASSERT_STR(parsed("fe80::1%lo"), "[fe80::1%lo]:80");
        ASSERT_STR(parsed("fe80::1%1"), "[fe80::1%lo]:80");
        ASSERT_STR(parsed("fe80::1%4000000000"), "[fe80::1%4000000000]:80");
        ASSERT_STR(parsed("fe80::1%4294967296"), "EINVAL");
        ASSERT_STR(parsed("fe80::1%0"), "EINVAL");
        ASSERT_OK(resha_addr_parse("fe80::1%lo", 80, &a));
        ASSERT_OK(resha_addr_parse("fe80::1%2", 80, &b));
        ASSERT_FALSE(resha_addr_equal(&a, &b));
        ASSERT_OK(resha_addr_parse("fe80::1", 80, &b));
        ASSERT_FALSE(resha_addr_equal(&a, &b));
        ASSERT_SAME("[fe80::1%lo]:80");
        ASSERT_SAME("[fe80::1%4000000000]:80");
        ASSERT_STR(scanned("[fe80::1%1]:80"), "[fe80::1%lo]:80");
}

TEST(what_is_printed_can_be_read)
{
        ASSERT_SAME("1.2.3.4:80");
        ASSERT_SAME("0.0.0.0:0");
        ASSERT_SAME("255.255.255.255:65535");
        ASSERT_SAME("[::]:0");
        ASSERT_SAME("[::1]:443");
        ASSERT_SAME("/run/x.sock");
        ASSERT_SAME("/run/with space:80");
        ASSERT_SAME("@name");
        ASSERT_SAME("@");
        ASSERT_SAME("unix:x.sock");
        ASSERT_SAME("unix:./x.sock");
        ASSERT_SAME("unix:1.2.3.4:80");
        ASSERT_SAME("unix:");
        ASSERT_STR(scanned("unix:/run/x.sock"), "/run/x.sock");
        ASSERT_STR(scanned("unix:@name"), "@name");
}

TEST(what_is_no_address_is_refused)
{
        static const char *const wrong[] = {
                "",        "none",    "localhost:80", "1.2.3.4",    "1.2.3.4:",       "1.2.3.4:65536",
                "::1:80",  "[::1]",   "[::1]:",       "[::1]:+1",   "[1.2.3.4]:80",   "1.2.3.4: 80",
                "::1]:80", "[::1:80", ":80",          "x.sock",     "1.2.3.4:000080", "/a\\",
                "/a\\x0",  "/a\\n",   "/a\\x00",      "unix:\\x00", "@a\\xg0",        "UNIX:/x",
        };
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
                ASSERT_STR(scanned(wrong[i]), "EINVAL");
        ASSERT_STR(scanned(NULL), "EINVAL");
}

TEST(unix_addresses_are_taken_as_they_are)
{
        resha_addr a;

        ASSERT_OK(resha_addr_unix("/run/x.sock", &a));
        ASSERT_EQ(resha_addr_family(&a), AF_UNIX);
        ASSERT_EQ(resha_addr_port(&a), 0);
        ASSERT_STR(text_of(&a), "/run/x.sock");
        size_t size;
        const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)resha_addr_sockaddr(&a, &size);
        ASSERT_EQ(size, offsetof(struct sockaddr_un, sun_path) + sizeof "/run/x.sock");
        ASSERT_STR(un->sun_path, "/run/x.sock");
        ASSERT_OK(resha_addr_unix("x.sock", &a));
        ASSERT_STR(text_of(&a), "unix:x.sock");
        ASSERT_OK(resha_addr_unix("@a\\b\n", &a));
        ASSERT_STR(text_of(&a), "@a\\x5cb\\x0a");
        un = (const struct sockaddr_un *)(const void *)resha_addr_sockaddr(&a, &size);
        ASSERT_EQ(size, offsetof(struct sockaddr_un, sun_path) + 1 + 4);
        ASSERT_EQ(memcmp(un->sun_path, "\0a\\b\n", 5), 0);
        ASSERT_EQ(resha_addr_unix("", &a), -EINVAL);
        ASSERT_EQ(resha_addr_unix("@", &a), -EINVAL);
        ASSERT_EQ(resha_addr_unix(NULL, &a), -EINVAL);
}

/* sun_path has 108 bytes, and a path needs one for its end: not one byte is cut silently. */
TASK(a_unix_name_has_at_most_107_bytes)
{
        char name[112], want[112];
        resha_addr a;

        for (int abstract = 0; abstract < 2; abstract++) {
                memset(name, 'x', sizeof name);
                name[0] = abstract ? '@' : '/';
                name[107 + abstract] = '\0';
                ASSERT_OK(resha_addr_unix(name, &a));
                snprintf(want, sizeof want, "%s", name);
                ASSERT_STR(text_of(&a), want);
                ASSERT_SAME(want);
                name[107 + abstract] = 'x';
                name[108 + abstract] = '\0';
                ASSERT_EQ(resha_addr_unix(name, &a), -ENAMETOOLONG);
                ASSERT_HAS(resha_error_of(-ENAMETOOLONG)->text, "has 108 bytes; at most 107");
        }
        ASSERT_STR(scanned(name), "ENAMETOOLONG");
        return 0;
}

/* ---- sockaddrs ---- */

static int unix_of(const char *bytes, size_t size, resha_addr *ret_addr)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        memcpy(un.sun_path, bytes, size);
        return resha_addr_from_sockaddr((const struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + size,
                                        ret_addr);
}

/* Of `size` bytes of a name: what its text says is the same address. */
static void there_and_back(const char *bytes, size_t size)
{
        resha_addr a, b;

        ASSERT_OK(unix_of(bytes, size, &a));
        ASSERT_OK(resha_addr_scan(text_of(&a), &b));
        ASSERT_TRUE(resha_addr_equal(&a, &b));
        ASSERT_EQ(memcmp(&a, &b, sizeof a), 0);
}

TEST(any_bytes_of_a_unix_name_come_back)
{
        char name[108];

        for (int c = 0; c < 256; c++) {
                for (size_t size = 1; size <= 3; size++) {
                        char odd[4] = { '\0', (char)c, '@' };
                        there_and_back(odd, size); /* abstract */
                        odd[0] = 'x';
                        there_and_back(odd, size);
                        odd[0] = (char)c;
                        there_and_back(odd, size);
                }
        }
        memset(name, 1, sizeof name);
        there_and_back(name, sizeof name);
        ASSERT_EQ(strlen(scanned("unix:")), 5);
        name[0] = '\0';
        there_and_back(name, sizeof name);
        resha_addr a;
        ASSERT_OK(unix_of(name, sizeof name, &a));
        ASSERT_EQ(strlen(text_of(&a)), 1 + 4 * 107);
}

TEST(a_path_ends_at_its_zero_byte_or_at_the_length)
{
        resha_addr a, b;

        ASSERT_OK(unix_of("/x", 2, &a));
        ASSERT_OK(unix_of("/x", 3, &b));
        ASSERT_TRUE(resha_addr_equal(&a, &b));
        ASSERT_OK(unix_of("/x\0yz", 5, &b));
        ASSERT_TRUE(resha_addr_equal(&a, &b));
        ASSERT_OK(unix_of("\0x", 2, &a)); /* in the abstract space a zero byte is a byte */
        ASSERT_OK(unix_of("\0x", 3, &b));
        ASSERT_FALSE(resha_addr_equal(&a, &b));
        ASSERT_STR(text_of(&b), "@x\\x00");
        ASSERT_OK(unix_of("", 0, &a));
        ASSERT_STR(text_of(&a), "unix:");
}

TEST(sockaddrs_in_and_out)
{
        struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80), .sin6_scope_id = 1 };
        struct sockaddr_storage other = { .ss_family = AF_NETLINK };
        char odd[sizeof v6 + 1];
        resha_addr a, b, none = { { 0 } };
        size_t size;

        v6.sin6_addr.s6_addr[0] = 0xfe;
        v6.sin6_addr.s6_addr[1] = 0x80;
        memcpy(odd + 1, &v6, sizeof v6); /* not aligned */
        ASSERT_OK(resha_addr_from_sockaddr((const struct sockaddr *)(const void *)(odd + 1), sizeof v6, &a));
        ASSERT_STR(text_of(&a), "[fe80::%lo]:80");
        ASSERT_OK(resha_addr_from_sockaddr(resha_addr_sockaddr(&a, &size), sizeof other, &b));
        ASSERT_EQ(size, sizeof v6);
        ASSERT_TRUE(resha_addr_equal(&a, &b));
        resha_addr_set_port(&b, 81);
        ASSERT_FALSE(resha_addr_equal(&a, &b));
        ASSERT_EQ(resha_addr_from_sockaddr((const struct sockaddr *)&v6, sizeof v6 - 1, &a), -EINVAL);
        ASSERT_EQ(resha_addr_from_sockaddr((const struct sockaddr *)&v6, 1, &a), -EINVAL);
        ASSERT_EQ(resha_addr_from_sockaddr(NULL, 0, &a), -EINVAL);
        ASSERT_EQ(resha_addr_from_sockaddr((const struct sockaddr *)&other, sizeof other, &a), -EAFNOSUPPORT);
        ASSERT_STR(text_of(&none), "none");
        ASSERT_EQ(resha_addr_family(&none), AF_UNSPEC);
        ASSERT_TRUE(resha_addr_equal(&none, &none));
        ASSERT_FALSE(resha_addr_equal(&none, &a));
        ASSERT_OK(resha_addr_parse("1.2.3.4", 80, &a));
        ASSERT_OK(resha_addr_parse("::ffff:1.2.3.4", 80, &b));
        ASSERT_EQ(resha_addr_family(&a), AF_INET);
        ASSERT_EQ(resha_addr_family(&b), AF_INET6);
        ASSERT_FALSE(resha_addr_equal(&a, &b));
}

TEST(text_is_cut_to_the_room_there_is)
{
        char text[8] = "unused";
        resha_addr a;

        ASSERT_OK(resha_addr_parse("127.0.0.1", 80, &a));
        ASSERT_STR(resha_addr_format(&a, text, 0), "unused");
        ASSERT_STR(resha_addr_format(&a, text, sizeof text), "127.0.0");
}
