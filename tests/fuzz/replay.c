/* Runs a fuzz target over files, without libFuzzer: fuzz_NAME FOLDER-OR-FILE... */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static int file_run(const char *path)
{
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || stat(path, &about) != 0) {
        fprintf(stderr, "cannot read %s\n", path);
        if (file) fclose(file);
        return -1;
    }
    /* Exactly as long as the input, so that a sanitizer sees every byte read beyond it. */
    uint8_t *data = malloc(about.st_size > 0 ? (size_t)about.st_size : 1);
    FUZZ_CHECK(data);
    size_t size = fread(data, 1, (size_t)about.st_size, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int folder_run(const char *folder)
{
    int count = 0, done = 0;
    struct dirent **names = NULL;
    int most = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < most; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (names[i]->d_name[0] != '.' && done >= 0) {
            done = file_run(path);
            count += done;
        }
        free(names[i]);
    }
    free(names);
    return done < 0 ? -1 : count;
}

int main(int count, char **arguments)
{
    int total = 0;
    for (int i = 1; i < count; i++) {
        struct stat about;
        bool folder = stat(arguments[i], &about) == 0 && S_ISDIR(about.st_mode);
        int done = folder ? folder_run(arguments[i]) : file_run(arguments[i]);
        if (done < 0) return 1;
        total += done;
    }
    printf("%d inputs\n", total);
    return total > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
