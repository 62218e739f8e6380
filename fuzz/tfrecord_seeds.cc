// tfrecord_seeds DIR: small files for tfrecord_fuzz.
#include "tests/data_sets/made_sets.hpp"

int main(int argc, char** argv) {
  using namespace forebay::test;
  if (argc != 2) return 2;
  const std::string folder = std::string(argv[1]) + "/";
  const std::string text = feature("image", 1, wire_bytes(1, "pixels"));
  const std::string packed = feature("label", 3, wire_bytes(1, "\x07\x96\x01"));
  const std::string single = feature("label", 3, "\x08\x07\x08\x01");
  const std::string floats = feature("box", 2, wire_bytes(1, "abcdefgh"));
  const std::string float_each = feature("box", 2,
                                         "\x0d"
                                         "abcd"
                                         "\x0d"
                                         "efgh");
  const std::string texts = feature("image", 1, wire_bytes(1, "a") + wire_bytes(1, "bc"));
  write_file(folder + "packed", tf_record(wire_bytes(1, text + packed + floats)) +
                                    tf_record(wire_bytes(1, floats + text + packed)));
  write_file(folder + "single", tf_record(wire_bytes(1, single + texts + float_each)) +
                                    tf_record(wire_bytes(1, single + text)) + tf_record(""));
  write_file(folder + "plain", tf_record("no example") + tf_record(wire_bytes(1, text)));
  return 0;
}
