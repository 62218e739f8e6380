// The formats of data sets, a row each: what every part of Forebay knows of them.
//
// A format is a folder beside this file and a row in registry.cc: a DataSet, how its files are
// recognised, and how they are opened. LMDB is the last, to which names go that are no files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/data_set.hpp"
#include "format/dataset_files.hpp"
#include "format/peers.hpp"
#include "storage/bulk_reader.hpp"

namespace forebay {

struct FormatOptions {
  Engine engine = Engine::pread;
  std::string format = "auto";      ///< by the first file, or the name of a format
  std::string schema;               ///< raw: the fields of a record; else an expectation to check
  std::uint64_t header_bytes = 0;   ///< raw: skipped at the start of every file
  std::uint64_t record_bytes = 0;   ///< raw: from record to record; 0: what the fields have
  bool big_endian = false;          ///< raw: byte order of the numbers
  std::uint64_t window_length = 0;  ///< streams of tokens: those of a sample; 0: not given
  std::uint64_t window_step = 0;    ///< from the first of one to that of the next; 0: as many
  bool keeps = true;  ///< what a walk has found is taken from the user's cache, and kept there
  // Of databases: which records are samples, and how they are found.
  ConventionName convention = ConventionName::automatic;
  KeyOrder order_by = KeyOrder::key;
  std::string leave_out;     ///< keys, or patterns, separated by commas: these are no samples
  std::string keep_records;  ///< these are, whatever they look like
  /// For a look at all that the files hold: a database that only holds named ones opens too, and
  /// nothing is kept.
  bool whole = false;
  bool hold = true;            ///< take places in the tables of readers where that is possible
  bool trust_sidecars = true;  ///< one may tell where records are
  BulkOptions bulk;            ///< of what is read beside plans
  std::chrono::milliseconds patience = std::chrono::seconds(60);  ///< with peers
  /// Calls what reads without a deadline of its own; empty: just calls it.
  std::function<void(std::function<void()>)> ask = {};
};

/// The first file of a data set, for a look.
struct FirstFile {
  std::string path;                  ///< without "file://"
  std::shared_ptr<const File> file;  ///< null: a directory
  const FormatOptions& options;
};

/// What a data set is to be made of.
struct FormatRequest {
  const std::string& text;  ///< as the user named the data set
  DatasetFiles found;       ///< files or directories, and the fields that were chosen
  const FormatOptions& options;
  /// Who opens it as well, for formats that have to look through their files.
  Peers& peers = no_peers();

  /// All of `found`, opened; of many only those that are in use stay open.
  DataFiles open_files() const;
};

struct Format {
  std::string name;
  std::string description;  ///< "NumPy arrays, a sample a row": for help and documentation
  /// Whether the data set looks like this one; empty: only when asked for by name. Throws io,
  /// and unsupported for what it recognises and nobody reads.
  std::function<bool(const FirstFile&)> recognise;
  /// Collective over FormatRequest::peers, where it uses them. Throws not_found, unsupported,
  /// corrupt, io, usage.
  std::function<std::unique_ptr<DataSet>(const FormatRequest&)> open;
  /// `recognise` looks for its signature in all of the file: asked when no other format knows what
  /// it begins with. Pages that were read here and there keep a cold file from being read ahead.
  bool searches = false;
  /// FormatOptions::schema says what the files hold; else it is an expectation.
  bool takes_schema = false;
  /// `open` finds out by itself what FormatRequest::text names: `found` is empty.
  bool names_itself = false;
  /// Records are found by an index that has to be located, or by walking: --locate and strategies
  /// that walk are for such data.
  bool located = false;
};

/// All formats, in the order in which they are asked whether they recognise a file; those that
/// search are asked last. Thread-safe.
std::vector<Format> formats();
/// Adds one to this process, before those that exist; a name that exists is usage. Thread-safe.
void add_format(Format format);
/// "hdf5, npy, cifar10": all names.
std::string format_names();

/// The row of a format. Throws usage, naming `text`, when there is none of that name.
Format find_format(const std::string& name, const std::string& text);

/// The format that the first file which `text` names looks like; the last one when there is no such
/// file: then opening tells what is wrong. Throws io, and corrupt, unsupported or not_found for
/// what is none of them, saying what its first bytes are.
std::string recognise_files(const std::string& text, const FormatOptions& options = {});

/// Whether the first file (or folder) that `text` names lies on a disk of this machine; true where
/// there is no such file.
bool are_local_files(const std::string& text);

/// Throws what there is to say of a file or folder that no format recognises.
[[noreturn]] void refuse_unknown(const FirstFile& first);

/// Opens the data set that `text` names: files, patterns, "#FIELDS" (dataset_files.hpp). Collective
/// over `peers`. Throws not_found, unsupported, corrupt, io, usage; what a peer throws on the way.
std::unique_ptr<DataSet> open_data_set(const std::string& text, const FormatOptions& options,
                                       Peers& peers = no_peers());

}  // namespace forebay
