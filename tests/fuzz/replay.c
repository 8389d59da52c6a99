/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target, without a fuzzer, on the files of a folder: its corpus, and what a fuzzer once found. */

#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>

int main(int argc, char **argv)
{
        static uint8_t data[1 << 16];
        unsigned n = 0;
        DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

        if (!dir) {
                fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
                return 2;
        }
        for (struct dirent *e; (e = readdir(dir));) {
                char path[4096];
                if (e->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
                FILE *f = fopen(path, "rb");
                if (!f) {
                        perror(path);
                        return 1;
                }
                size_t size = fread(data, 1, sizeof data, f);
                fclose(f);
                fprintf(stderr, "%s\n", path);
                LLVMFuzzerTestOneInput(data, size);
                n++;
        }
        closedir(dir);
        printf("%u passed, 0 failed\n", n);
        return n == 0;
}
