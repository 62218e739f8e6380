#include "forebay/error.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace forebay {
namespace {

constexpr std::string_view kKindNames[] = {"usage", "not_found",     "corrupt", "unsupported",
                                           "io",    "communication", "changed", "cancelled"};

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

std::string compose(const std::string& happened, const std::string& remedy, const Where& where) {
  std::string line;
  if (where.rank >= 0) line += fmt::format("rank {}: ", where.rank);
  if (!where.file.empty()) line += where.file + ": ";
  if (where.offset) line += fmt::format("offset {}: ", *where.offset);
  if (where.sample) line += fmt::format("sample {}: ", *where.sample);
  if (!where.key.empty()) line += fmt::format("key {}: ", where.key);
  line += happened;
  if (!remedy.empty()) line += "; " + remedy;
  return one_line(std::move(line));
}

ErrorKind parse_kind(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kKindNames); ++i) {
    if (kKindNames[i] == name) return static_cast<ErrorKind>(i);
  }
  return ErrorKind::communication;
}

}  // namespace

std::string_view to_string(ErrorKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

Error::Error(ErrorKind kind, const std::string& happened, const std::string& remedy, Where where)
    : std::runtime_error(compose(happened, remedy, where)),
      kind_(kind),
      happened_(happened),
      remedy_(remedy),
      where_(std::move(where)) {}

Error Error::at_rank(int rank) const {
  Where where = where_;
  if (where.rank < 0) where.rank = rank;
  return {kind_, happened_, remedy_, where};
}

Error Error::within(const Where& outer) const {
  Where where = where_;
  if (where.file.empty()) where.file = outer.file;
  if (!where.offset) where.offset = outer.offset;
  if (!where.sample) where.sample = outer.sample;
  if (where.key.empty()) where.key = outer.key;
  if (where.rank < 0) where.rank = outer.rank;
  return {kind_, happened_, remedy_, where};
}

std::string serialize(const Error& error) {
  nlohmann::json json{{"kind", to_string(error.kind())}, {"happened", error.happened()},
                      {"remedy", error.remedy()},        {"file", error.where().file},
                      {"key", error.where().key},        {"rank", error.where().rank}};
  if (error.where().offset) json["offset"] = *error.where().offset;
  if (error.where().sample) json["sample"] = *error.where().sample;
  // A path may hold bytes that are not UTF-8: replace them rather than fail while failing.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Error parse_error(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    Where where{
        .file = json.at("file"), .sample = {}, .key = json.at("key"), .rank = json.at("rank")};
    if (json.contains("offset")) where.offset = json.at("offset").get<std::uint64_t>();
    if (json.contains("sample")) where.sample = json.at("sample").get<std::uint64_t>();
    return {parse_kind(json.at("kind").get<std::string>()), json.at("happened"), json.at("remedy"),
            where};
  } catch (const nlohmann::json::exception&) {
    return {ErrorKind::communication,
            fmt::format("a rank failed with an unreadable message: {}", text.substr(0, 200))};
  }
}

std::string printable_key(std::string_view bytes, std::size_t limit) {
  bool printable = !bytes.empty();
  for (const unsigned char c : bytes) printable = printable && c > 0x20 && c < 0x7f;
  std::string text;
  if (printable) {
    text = bytes;
  } else {
    text = "0x";
    for (const unsigned char c : bytes) text += fmt::format("{:02x}", c);
  }
  if (text.size() <= limit) return text;
  const std::size_t half = (limit - 3) / 2;
  return text.substr(0, half) + "..." + text.substr(text.size() - half);
}

}  // namespace forebay
