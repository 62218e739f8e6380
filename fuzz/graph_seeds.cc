// graph_seeds DIR: writes small graph files as seeds for graph_fuzz.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: graph_seeds DIR\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  int number = 0;
  for (const char* seed :
       {R"({"nodes":[]})", R"({"nodes":[{"name":"a"}],"edges":[["a","a"]],"fetches":["a"]})",
        R"({"nodes":[{"name":"x","collective":{"type":"float16","shape":[64,3,7,7],)"
        R"("reduction":"mean"}},{"name":"y","collective":{"type":"int64","shape":[]}},)"
        R"({"name":"z","collective":{"type":"float16","shape":[10],"reduction":"mean"}}],)"
        R"("edges":[["x","y"],["x","z"]],"fetches":["z","y"]})",
        R"({"nodes":[{"name":"a","op":"conv"},{"name":"b"},{"name":"c"},)"
        R"({"name":"s","collective":{"type":"float32","shape":[0,5]}},)"
        R"({"name":"t","collective":{"type":"float32","shape":[700],"reduction":"max"}}],)"
        R"("edges":[["a","b"],["b","c"],["c","s"],["b","t"],["s","t"]],"fetches":["t"]})"}) {
    std::ofstream(folder / std::to_string(number++)) << seed;
  }
  return 0;
}
