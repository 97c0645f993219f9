/* Makes folders unwritable for the program that is started with it in LD_PRELOAD, whoever runs it.
 *
 * SHIM_FOLDERS: absolute paths, separated by colons.
 * SHIM_ERRNO:   what whoever writes below them is told. Alone, nothing can be opened for writing, made, renamed or removed.
 * SHIM_ROOM:    with it they are merely full: files can be made and written over, but grow by so many bytes in all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int below(const char *path) {
    const char *folders = getenv("SHIM_FOLDERS");
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        if (!strncmp(path, folders, length) && (path[length] == '/' || !path[length])) return 1;
        folders += length + (folders[length] == ':');
    }
    return 0;
}

/* Where a file is that is named as seen from an open folder, or that is open itself if it has no name. */
static int below_at(int folder, const char *name) {
    char link[64], path[2 * PATH_MAX];
    if (name && *name == '/') return below(name);
    if (folder == AT_FDCWD) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0) return 0;
    snprintf(path + length, PATH_MAX, "%s%s", name ? "/" : "", name ? name : "");
    return below(path);
}

static int refused(void) {
    errno = atoi(getenv("SHIM_ERRNO"));
    return -1;
}

static int forbidden(int folder, const char *name) { return !getenv("SHIM_ROOM") && below_at(folder, name); }

static int writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC); }

/* Whether a write behind the end of a file is too much. */
static int full(int file, off_t end) {
    static atomic_llong used;
    struct stat status;
    int before = errno;
    if (!getenv("SHIM_ROOM") || !below_at(file, NULL) || fstat(file, &status) || !S_ISREG(status.st_mode)) {
        errno = before;
        return 0;
    }
    long long growth = end > status.st_size ? end - status.st_size : 0;
    if (!growth || atomic_fetch_add(&used, growth) + growth <= atoll(getenv("SHIM_ROOM"))) return 0;
    atomic_fetch_sub(&used, growth);
    return 1;
}

#define OPEN(name)                                                           \
    int name(const char *path, int flags, ...) {                             \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        mode_t mode = va_arg(rest, mode_t);                                  \
        va_end(rest);                                                        \
        if (writes(flags) && forbidden(AT_FDCWD, path)) return refused();    \
        return REAL(name)(path, flags, mode);                                \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                         \
    int name(int folder, const char *path, int flags, ...) {                 \
        va_list rest;                                                        \
        va_start(rest, flags);                                               \
        mode_t mode = va_arg(rest, mode_t);                                  \
        va_end(rest);                                                        \
        if (writes(flags) && forbidden(folder, path)) return refused();      \
        return REAL(name)(folder, path, flags, mode);                        \
    }
OPENAT(openat)
OPENAT(openat64)

int mkdir(const char *path, mode_t mode) {
    struct stat status;
    /* That it is there already is said first. */
    return forbidden(AT_FDCWD, path) && stat(path, &status) ? refused() : REAL(mkdir)(path, mode);
}

int unlink(const char *path) { return forbidden(AT_FDCWD, path) ? refused() : REAL(unlink)(path); }

int rmdir(const char *path) { return forbidden(AT_FDCWD, path) ? refused() : REAL(rmdir)(path); }

int unlinkat(int folder, const char *path, int flags) {
    return forbidden(folder, path) ? refused() : REAL(unlinkat)(folder, path, flags);
}

int rename(const char *from, const char *to) {
    return forbidden(AT_FDCWD, from) || forbidden(AT_FDCWD, to) ? refused() : REAL(rename)(from, to);
}

int symlink(const char *target, const char *path) {
    return forbidden(AT_FDCWD, path) ? refused() : REAL(symlink)(target, path);
}

int chmod(const char *path, mode_t mode) { return forbidden(AT_FDCWD, path) ? refused() : REAL(chmod)(path, mode); }

ssize_t write(int file, const void *bytes, size_t count) {
    if (full(file, lseek(file, 0, SEEK_CUR) + (off_t)count)) return refused();
    return REAL(write)(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    if (full(file, at + (off_t)count)) return refused();
    return REAL(pwrite64)(file, bytes, count, at);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    off_t end = lseek(file, 0, SEEK_CUR);
    for (int part = 0; part < count; part++) end += (off_t)parts[part].iov_len;
    if (full(file, end)) return refused();
    return REAL(writev)(file, parts, count);
}
