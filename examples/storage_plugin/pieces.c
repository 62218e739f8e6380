/* A storage plug-in: "pieces:///data/train.mdb" is a file that was cut into pieces, as split(1)
 * does for stores that limit the size of a file:
 *
 *   split -b 1G -d -a 3 /data/train.mdb /data/train.mdb.
 *
 *   /data/train.mdb.000   /data/train.mdb.001   /data/train.mdb.002      what is stored
 *   |---------------------|---------------------|------------|           what Forebay sees
 *   0                     1 GiB                 2 GiB        size
 *
 * FOREBAY_PIECES_DIGITS says how many digits the numbers have (default 3, at most 9).
 *
 * Pieces are opened once and stay open, so that any number of threads may read at once by pread(2);
 * a piece that is not there ends the file. A piece that becomes shorter ends a read early, and the
 * size says so.
 */
#define _FILE_OFFSET_BITS 64
#define _XOPEN_SOURCE 700

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forebay/storage_plugin.h"

struct piece {
  int descriptor;
  uint64_t begin; /* in the whole file, as it was at open */
  uint64_t bytes; /* at open */
};

struct pieces {
  struct piece* all;
  size_t count;
};

struct settings {
  int digits;
};

/* Text for the user, and the kind of error that fits errno. */
static int failed(const char* what, const char* name, char* error, size_t error_size) {
  const int number = errno;
  snprintf(error, error_size, "%s %s: %s", what, name, strerror(number));
  if (number == ENOENT || number == ENOTDIR) return FOREBAY_STORAGE_NOT_FOUND;
  if (number == ENAMETOOLONG || number == ELOOP) return FOREBAY_STORAGE_USAGE;
  return FOREBAY_STORAGE_IO;
}

static int init(void** state, char* error, size_t error_size) {
  const char* text = getenv("FOREBAY_PIECES_DIGITS");
  char* end = NULL;
  const long digits = text == NULL ? 3 : strtol(text, &end, 10);
  struct settings* settings;
  if (digits < 1 || digits > 9 || (end != NULL && *end != '\0')) {
    snprintf(error, error_size, "FOREBAY_PIECES_DIGITS is '%s', not a number from 1 to 9", text);
    return FOREBAY_STORAGE_USAGE;
  }
  settings = malloc(sizeof *settings);
  if (settings == NULL) return failed("no memory for", "the settings", error, error_size);
  settings->digits = (int)digits;
  *state = settings;
  return FOREBAY_STORAGE_OK;
}

static void shut_down(void* state) { free(state); }

static void close_pieces(void* file) {
  struct pieces* pieces = file;
  size_t i;
  for (i = 0; i < pieces->count; ++i) close(pieces->all[i].descriptor);
  free(pieces->all);
  free(pieces);
}

/* Takes the open file `descriptor` over as the next piece. */
static int add_piece(struct pieces* pieces, int descriptor, const char* path, char* error,
                     size_t error_size) {
  struct stat status;
  struct piece* more;
  const struct piece* last = pieces->count == 0 ? NULL : &pieces->all[pieces->count - 1];
  const uint64_t begin = last == NULL ? 0 : last->begin + last->bytes;
  if (fstat(descriptor, &status) != 0) {
    const int code = failed("cannot look at", path, error, error_size);
    close(descriptor);
    return code;
  }
  more = S_ISREG(status.st_mode) ? realloc(pieces->all, (pieces->count + 1) * sizeof *pieces->all)
                                 : NULL;
  if (more == NULL) {
    close(descriptor);
    snprintf(error, error_size, "%s is not a file, or memory is short", path);
    return S_ISDIR(status.st_mode) ? FOREBAY_STORAGE_NOT_FOUND : FOREBAY_STORAGE_IO;
  }
  pieces->all = more;
  pieces->all[pieces->count].descriptor = descriptor;
  pieces->all[pieces->count].begin = begin;
  pieces->all[pieces->count].bytes = (uint64_t)status.st_size;
  ++pieces->count;
  return FOREBAY_STORAGE_OK;
}

/* All pieces from number 0 up to the first that is not there. */
static int open_all(struct pieces* pieces, const char* name, int digits, char* error,
                    size_t error_size) {
  const size_t room = strlen(name) + 16;
  char* path = malloc(room);
  int code = FOREBAY_STORAGE_OK;
  unsigned number;
  if (path == NULL) return failed("no memory for", name, error, error_size);
  for (number = 0; code == FOREBAY_STORAGE_OK; ++number) {
    int descriptor;
    snprintf(path, room, "%s.%0*u", name, digits, number);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) {
      code = add_piece(pieces, descriptor, path, error, error_size);
    } else if (errno == ENOENT && number > 0) {
      break;
    } else {
      code = failed("cannot open", path, error, error_size);
    }
  }
  free(path);
  return code;
}

static int open_pieces(void* state, const char* name, void** file, char* error, size_t error_size) {
  const struct settings* settings = state;
  struct pieces* pieces = calloc(1, sizeof *pieces);
  int code;
  if (pieces == NULL) return failed("no memory for", name, error, error_size);
  code = open_all(pieces, name, settings->digits, error, error_size);
  if (code != FOREBAY_STORAGE_OK) {
    close_pieces(pieces);
    return code;
  }
  *file = pieces;
  return FOREBAY_STORAGE_OK;
}

/* Up to the first piece that is not as long any more as it was. */
static int size_of(void* file, uint64_t* bytes, char* error, size_t error_size) {
  const struct pieces* pieces = file;
  size_t i;
  *bytes = 0;
  for (i = 0; i < pieces->count; ++i) {
    struct stat status;
    if (fstat(pieces->all[i].descriptor, &status) != 0) {
      return failed("cannot look at", "a piece", error, error_size);
    }
    if ((uint64_t)status.st_size < pieces->all[i].bytes) {
      *bytes += (uint64_t)status.st_size;
      return FOREBAY_STORAGE_OK;
    }
    *bytes += pieces->all[i].bytes;
  }
  return FOREBAY_STORAGE_OK;
}

/* What one piece has of the range; Forebay asks again for what the next one has. */
static int read_some(void* file, uint64_t offset, void* into, uint64_t wanted, uint64_t* got,
                     char* error, size_t error_size) {
  const struct pieces* pieces = file;
  size_t i;
  *got = 0;
  for (i = 0; i < pieces->count; ++i) {
    const struct piece* piece = &pieces->all[i];
    uint64_t inside, left;
    ssize_t count;
    if (offset < piece->begin || offset - piece->begin >= piece->bytes) continue;
    inside = offset - piece->begin;
    left = piece->bytes - inside;
    do {
      count =
          pread(piece->descriptor, into, (size_t)(wanted < left ? wanted : left), (off_t)inside);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return failed("cannot read", "a piece", error, error_size);
    *got = (uint64_t)count;
    break;
  }
  return FOREBAY_STORAGE_OK;
}

/* Changes when a piece is written again or replaced. */
static int identify(void* file, uint64_t* identity, char* error, size_t error_size) {
  const struct pieces* pieces = file;
  size_t i;
  *identity = 1469598103934665603u; /* FNV-1a */
  for (i = 0; i < pieces->count; ++i) {
    struct stat status;
    if (fstat(pieces->all[i].descriptor, &status) != 0) {
      return failed("cannot look at", "a piece", error, error_size);
    }
    *identity = (*identity ^ (uint64_t)status.st_ino) * 1099511628211u;
    *identity = (*identity ^ (uint64_t)status.st_mtim.tv_sec) * 1099511628211u;
    *identity = (*identity ^ (uint64_t)status.st_mtim.tv_nsec) * 1099511628211u;
  }
  return FOREBAY_STORAGE_OK;
}

const struct forebay_storage_plugin forebay_storage_plugin_v1 = {
    FOREBAY_STORAGE_ABI,
    sizeof(struct forebay_storage_plugin),
    "pieces",
    init,
    shut_down,
    open_pieces,
    size_of,
    read_some,
    close_pieces,
    identify,
};
