"""Sources that are compiled together define no name twice."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import unity_groups  # noqa: E402


def source(*lines):
    return "\n".join(("namespace forebay {", "namespace {", *lines, "}  // namespace", "void run() {}",
                      "}  // namespace forebay", ""))


class UnityGroups(unittest.TestCase):
    def assert_apart(self, *lines):
        for line in lines:
            groups = unity_groups.sort_into_groups([source(line), source(line)], 1000)
            self.assertEqual(groups, [0, 1], line)

    def assert_together(self, one, other):
        self.assertEqual(unity_groups.sort_into_groups([source(one), source(other)], 1000), [0, 0])

    def test_a_name_in_two_files_keeps_them_apart(self):
        self.assert_apart("constexpr int kMost = 3;", "constexpr std::array<int, 2> kPair{1, 2};",
                          "struct Trap {", "enum class Side { kLeft };",
                          "std::uint64_t bytes_of(std::span<const std::byte> value) {",
                          "[[noreturn]] void damaged(const std::string& what) {", "#define FAIL 1")

    def test_other_names_do_not(self):
        self.assert_together("constexpr int kMost = 3;", "constexpr int kLeast = 1;")
        self.assert_together("  int kMost = 3;", "  int kMost = 3;")

    def test_test_cases_and_names_of_other_namespaces_do_not(self):
        self.assert_together("using test::Folder;", "using test::Folder;")
        self.assert_together("using namespace std::literals;", "using namespace std::literals;")
        self.assert_together("TEST(Order, IsComplete) {", "TEST(Order, IsFair) {")

    def test_an_alias_keeps_files_apart_that_mean_different_things(self):
        self.assert_together("using Json = nlohmann::json;", "using Json = nlohmann::json;")
        self.assert_together("namespace fs = std::filesystem;", "namespace fs = std::filesystem;")
        groups = unity_groups.sort_into_groups(
            [source("using Json = nlohmann::json;"), source("using Json = nlohmann::ordered_json;"),
             source("struct Json {")], 1000)
        self.assertEqual(groups, [0, 1, 2])

    def test_what_a_type_derives_from_does_not(self):
        self.assert_together("class One : public testing::Test {", "class Other : public testing::Test {")
        self.assert_apart("class One : public testing::Test {")

    def test_names_outside_of_unnamed_namespaces_do_not(self):
        self.assert_together("", "")

    def test_a_group_has_a_size(self):
        self.assertEqual(unity_groups.sort_into_groups(["\n" * 40] * 5, 100), [0, 0, 1, 1, 2])


if __name__ == "__main__":
    unittest.main()
