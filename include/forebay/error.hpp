// The one error type of Forebay.
//
// Every failure that a caller can see is an Error of one of eight kinds. Its message is a single
// line that says where (file, offset, sample, key, rank), what happened, and what to do about it:
//
//   data.mdb: page 17 at offset 69632: page number 9000 is past the last page 512; the file is
//   damaged or was cut: restore it from a copy, or run 'forebay verify data.mdb'
//
// What still works after an error: a local error (opening or reading a file) leaves its object
// usable, so the call may be repeated. An error that came out of a Loader is collective: every rank
// sees the same one, the loader is finished, and only its destruction is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace forebay {

enum class ErrorKind : std::uint8_t {
  usage,          ///< the caller asked for something that makes no sense: fix the call
  not_found,      ///< the named thing does not exist
  corrupt,        ///< bytes in a file contradict their format
  unsupported,    ///< valid, but not something that Forebay reads
  io,             ///< the operating system or the device failed
  communication,  ///< MPI failed, a rank died, or a wait passed its deadline
  changed,        ///< the data set was changed while it was open
  cancelled,      ///< the object was shut down while the call was waiting
};

std::string_view to_string(ErrorKind kind);

/// The place an error speaks of. Fields that do not apply stay empty.
struct Where {
  std::string file = {};
  std::optional<std::uint64_t> offset = {};  ///< bytes from the start of `file`
  std::optional<std::uint64_t> sample = {};  ///< sample id
  std::string key = {};                      ///< printable, or 0x-prefixed hexadecimal
  int rank = -1;                             ///< the rank that failed; -1 when not known
};

/// Thread-safety: immutable after construction, copies are independent.
class Error : public std::runtime_error {
 public:
  /// `happened` states the fault, `remedy` what the reader of the message can do (may be empty).
  Error(ErrorKind kind, const std::string& happened, const std::string& remedy = {},
        Where where = {});

  ErrorKind kind() const noexcept { return kind_; }
  const Where& where() const noexcept { return where_; }
  const std::string& happened() const noexcept { return happened_; }
  const std::string& remedy() const noexcept { return remedy_; }

  /// A copy that names `rank` as the origin, unless one is named already.
  Error at_rank(int rank) const;
  /// A copy with the empty fields of its place filled in from `outer`.
  Error within(const Where& outer) const;

 private:
  ErrorKind kind_;
  std::string happened_;
  std::string remedy_;
  Where where_;
};

/// Text form that crosses process boundaries; parse_error(serialize(e)) equals e.
/// parse_error never throws on malformed text: it returns a communication error that quotes it.
std::string serialize(const Error& error);
Error parse_error(std::string_view text);

/// Bytes of a key as people read them: itself when printable ASCII, else 0x-prefixed hexadecimal,
/// shortened in the middle past `limit` characters.
std::string printable_key(std::string_view bytes, std::size_t limit = 80);

}  // namespace forebay
