/* SPDX-License-Identifier: MIT */
/* G7: the words of all files below a folder, at most 64 files at a time, and a report that is replaced in one step: who
 * reads it meanwhile gets the old or the new one.   g7 FOLDER counts there; without one it makes some files, counts
 * them, and removes them again. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <resha/resha.h>

enum { FILES = 24, PATH = 512 };

struct count {
        resha_group *group;
        resha_semaphore places; /* of files that are read at the same time */
        size_t files, folders, words;
};

struct place {
        struct count *count;
        char path[PATH];
};

static size_t words_in(const char *text, size_t size)
{
        size_t words = 0;

        for (size_t i = 0; i < size; i++)
                words += !isspace((unsigned char)text[i]) && (i == 0 || isspace((unsigned char)text[i - 1]));
        return words;
}

static int count_file(void *arg)
{
        const struct place *p = arg;
        void *text;
        size_t size;
        int rc = resha_semaphore_acquire(&p->count->places);

        if (rc < 0)
                return rc;
        rc = resha_file_load(p->path, 0, &text, &size);
        resha_semaphore_release(&p->count->places);
        if (rc < 0)
                return rc; /* its record names the file */
        p->count->files++;
        p->count->words += words_in(text, size);
        resha_free(text);
        return 0;
}

/* A task for each entry: files are counted, folders walked through. */
static int walk(void *arg)
{
        const struct place *p = arg;
        resha_dir *dir RESHA_CLEANUP(resha_dir_closep) = NULL;
        resha_dir_entry entry;
        int rc = resha_dir_open(p->path, &dir);

        while (rc >= 0 && (rc = resha_dir_next(dir, &entry)) > 0) {
                struct place next = { .count = p->count };
                if (snprintf(next.path, PATH, "%s/%s", p->path, entry.name) >= PATH)
                        return resha_fail(-ENAMETOOLONG, "%s/%s: the name is too long", p->path, entry.name);
                if (entry.kind == RESHA_FILE_FOLDER)
                        rc = resha_spawn_copy(p->count->group, walk, &next);
                else if (entry.kind == RESHA_FILE_REGULAR)
                        rc = resha_spawn_copy(p->count->group, count_file, &next);
        }
        p->count->folders += rc == 0;
        return rc;
}

static int count_below(const char *folder)
{
        RESHA_GROUP(g);
        struct count count = { .group = &g };
        struct place top = { .count = &count };
        char report[100];

        resha_semaphore_init(&count.places, 64);
        snprintf(top.path, PATH, "%s", folder);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, walk, &top);
        int rc = resha_group_end(&g, 0);
        if (rc < 0)
                return rc;
        snprintf(report, sizeof report, "%zu words in %zu files, %zu folders\n", count.words, count.files,
                 count.folders);
        printf("%s", report);
        return resha_file_save("words.txt", report, strlen(report),
                               &(resha_save_opts){ .no_sync = true }); /* it can be made again */
}

/* ---- a demonstration ---- */

static int make_file(void *arg)
{
        int i = *(const int *)arg;
        char folder[PATH], path[PATH + 16], text[FILES * 5] = "";

        snprintf(folder, sizeof folder, "g7-files/folder %d/more", i % 3);
        snprintf(path, sizeof path, "%s/%d.txt", folder, i);
        for (int k = 0; k < i; k++)
                memcpy(text + 5 * k, k % 2 ? "word\n" : "text ", 5);
        int rc = resha_path_mkdir(folder, 0777, true);
        return rc < 0 ? rc : resha_file_save(path, text, 5 * (size_t)i, &(resha_save_opts){ .no_sync = true });
}

/* What was never made need not be removed. */
static int remove_one(int rc, const char *path, bool folder)
{
        int now = folder ? resha_path_rmdir(path) : resha_path_unlink(path);

        return rc < 0 || now == -ENOENT ? rc : now;
}

static int remove_files(void *unused)
{
        char path[PATH];
        int rc = remove_one(0, "words.txt", false);

        (void)unused;
        for (int i = 0; i < FILES; i++) {
                snprintf(path, sizeof path, "g7-files/folder %d/more/%d.txt", i % 3, i);
                rc = remove_one(rc, path, false);
        }
        for (int i = 0; i < 3; i++) {
                snprintf(path, sizeof path, "g7-files/folder %d/more", i);
                rc = remove_one(rc, path, true);
                snprintf(path, sizeof path, "g7-files/folder %d", i);
                rc = remove_one(rc, path, true);
        }
        return remove_one(rc, "g7-files", true);
}

static int show(void)
{
        int numbers[FILES];
        void *report;

        for (int i = 0; i < FILES; i++)
                numbers[i] = i;
        int rc = resha_gather(make_file, numbers, FILES, sizeof numbers[0], NULL);
        if (rc == 0)
                rc = count_below("g7-files");
        if (rc == 0)
                rc = resha_file_load("words.txt", 0, &report, NULL);
        if (rc < 0)
                return rc;
        printf("the report says: %s", (const char *)report);
        resha_free(report);
        rc = count_below("g7-files/none");
        printf("%s\n", resha_error_of(rc)->text);
        return rc == -ENOENT ? 0 : rc;
}

static int program(void *folder)
{
        if (folder)
                return count_below(folder);
        int rc = show();
        int removed = resha_shielded(RESHA_S(10), remove_files, NULL);

        return rc < 0 ? rc : removed;
}

int main(int argc, char **argv)
{
        return resha_main(program, argc > 1 ? argv[1] : NULL);
}
