/* A disk that fails, for one process: loaded before the C library.
 *
 * FAILING_DISK_FOLDER  what lies below this folder is on the disk
 * FAILING_DISK_SPACE   so many bytes can be written to it, then it is full (ENOSPC)
 * FAILING_DISK_SYNC    the sync with this number fails (EIO), once, as Linux reports it
 * FAILING_DISK_TRACE   a file that gets a line for each sync: its number, its outcome, how far
 *                      the file was written, and its path; and for each write that found no room
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static long written, syncs;

/* The path of a file on the disk; NULL if it is elsewhere. */
static const char *on_disk(int fd, char *path, size_t size) {
    const char *folder = getenv("FAILING_DISK_FOLDER");
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (!folder || length < 0) return NULL;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0 ? path : NULL;
}

static void note(long number, const char *outcome, int fd, const char *path) {
    const char *trace = getenv("FAILING_DISK_TRACE");
    if (!trace) return;
    char line[4400];
    int length = snprintf(line, sizeof line, "%ld %s %ld %s\n", number, outcome, (long)lseek(fd, 0, SEEK_CUR), path);
    int out = open(trace, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ssize_t (*write_)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (out < 0) return;
    if (write_(out, line, (size_t)length) < 0) abort();
    close(out);
}

static int is_full(int fd, size_t count) {
    char path[4096];
    const char *space = getenv("FAILING_DISK_SPACE");
    if (!space || !on_disk(fd, path, sizeof path)) return 0;
    if (__sync_add_and_fetch(&written, (long)count) <= atol(space)) return 0;
    note(0, "full", fd, path);
    errno = ENOSPC;
    return 1;
}

static int sync_fails(int fd) {
    char path[4096];
    const char *number = getenv("FAILING_DISK_SYNC");
    if (!on_disk(fd, path, sizeof path)) return 0;
    long now = __sync_add_and_fetch(&syncs, 1);
    int fails = number && now == atol(number);
    note(now, fails ? "failed" : "ok", fd, path);
    if (fails) errno = EIO;
    return fails;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t count) { return is_full(fd, count) ? -1 : NEXT(write)(fd, bytes, count); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return is_full(fd, count) ? -1 : NEXT(pwrite)(fd, bytes, count, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return is_full(fd, count) ? -1 : NEXT(pwrite64)(fd, bytes, count, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
    size_t all = 0;
    for (int part = 0; part < count; part++) all += parts[part].iov_len;
    return is_full(fd, all) ? -1 : NEXT(writev)(fd, parts, count);
}
int fsync(int fd) { return sync_fails(fd) ? -1 : NEXT(fsync)(fd); }
int fdatasync(int fd) { return sync_fails(fd) ? -1 : NEXT(fdatasync)(fd); }
