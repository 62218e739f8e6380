/* A storage system that Forebay does not know, as a shared object: how files of "scheme://..." are
 * read. After the portable storage interface of DeepIO (paper 004, III.D): initialise, open, read.
 *
 *   forebay                                   plug-in (C, C++ or anything that exports C)
 *   dlopen, forebay_storage_plugin_v1 ------> the table below, looked at before anything runs
 *   init                              ------> connections, configuration        once a process
 *   open "what stands after ://"      ------> a file                            per file
 *   size, read, identity              ------> bytes                             many threads
 *   close, shut_down                  ------>
 *
 * Rules for the plug-in
 *   - It exports one symbol, `forebay_storage_plugin_v1`, and keeps the table and its strings for
 *     as long as the process lives. Forebay never unloads it.
 *   - Functions return FOREBAY_STORAGE_OK or the kind of what went wrong. Then they may write what
 *     happened, as one line of text with a zero at its end, into `error`, which has room for
 *     `error_size` bytes (at least 256) and is empty before the call.
 *   - No exception leaves a function, and no longjmp. (Forebay catches what it can and names the
 *     plug-in; do not count on it.)
 *   - `init` is called once, before all others; `shut_down` at the end of the process, if at all,
 *     once all files are closed. `open` may be called from many threads at once, and so may `size`,
 *     `read` and `identity`, also for one file. `close` is called once a file, when nobody uses it.
 *   - Every function waits for its server as long as that makes sense; with a timeout of its own
 *     the error says what was waited for. Forebay gives up a `read` after the loader's timeout, and
 *     then never calls the file again, while the thread that waits stays behind.
 *   - A process may fork after `init`; the child uses only files that it opens itself.
 *
 * This header is C99 and C++. A plug-in needs no library of Forebay; docs/storage.md and
 * examples/storage_plugin show one from its source to its use.
 */
#ifndef FOREBAY_STORAGE_PLUGIN_H
#define FOREBAY_STORAGE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /* Of this version of the table. Another number means another table. */
  FOREBAY_STORAGE_ABI = 1
};

/* What the functions return. Any other number counts as FOREBAY_STORAGE_IO. */
enum {
  FOREBAY_STORAGE_OK = 0,
  FOREBAY_STORAGE_NOT_FOUND = 1,  /* nothing of that name, or a folder */
  FOREBAY_STORAGE_IO = 2,         /* permission, device, network, server */
  FOREBAY_STORAGE_USAGE = 3,      /* the name or the configuration makes no sense */
  FOREBAY_STORAGE_UNSUPPORTED = 4 /* this storage cannot do that */
};

struct forebay_storage_plugin {
  /* FOREBAY_STORAGE_ABI and sizeof(struct forebay_storage_plugin), as the plug-in was compiled.
   * Members are only ever appended, so a longer table than Forebay's is fine. */
  uint32_t abi_version;
  size_t struct_size;

  /* The word before "://": a small letter, then small letters, digits, '+', '-' or '.', at most 31
   * in all. "file" and "mem" are Forebay's own. */
  const char* scheme;

  /* Makes the plug-in ready. `*state` is handed to shut_down and open; it may stay null. */
  int (*init)(void** state, char* error, size_t error_size);
  /* Frees what init made. */
  void (*shut_down)(void* state);

  /* Opens `name`, what stands behind "scheme://" without a change, for reading. `*file` is handed
   * to the functions below and must not stay null. Forebay also asks in this way whether there is
   * such a file, so a name that does not exist must end in FOREBAY_STORAGE_NOT_FOUND. */
  int (*open)(void* state, const char* name, void** file, char* error, size_t error_size);
  /* The size in bytes as it is now: a smaller one than before tells that the file was cut. */
  int (*size)(void* file, uint64_t* bytes, char* error, size_t error_size);
  /* Reads up to `wanted` bytes (more than 0) at `offset` to `into`. `*got` is how many came: fewer
   * than wanted are fine, and are asked for again; 0 means that the file ends at `offset`. */
  int (*read)(void* file, uint64_t offset, void* into, uint64_t wanted, uint64_t* got, char* error,
              size_t error_size);
  /* Frees what open made. */
  void (*close)(void* file);

  /* Optional, may be null: a number that changes when the content does (from a version, a time of
   * change, a checksum of the server). Cheap: asked after every group of reads. */
  int (*identity)(void* file, uint64_t* identity, char* error, size_t error_size);
};

/* Defined by the plug-in. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
extern const struct forebay_storage_plugin forebay_storage_plugin_v1;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FOREBAY_STORAGE_PLUGIN_H */
