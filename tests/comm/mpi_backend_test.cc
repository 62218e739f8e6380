// What is decided before any MPI is loaded: no test here loads one.
#include "comm/mpi_backend.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "comm/mpi_in_process.hpp"
#include "comm/mpi_launcher.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

using ::testing::HasSubstr;

/// Variables of the environment, for the length of a test; those of launchers are left out.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_FD", "PMI_PORT", "PMI_SIZE", "PMIX_RANK",
          "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "FOREBAY_MPI_BACKEND"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    variables_ = variables;
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
    for (const auto& [name, value] : before_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> before_;
  std::map<std::string, std::string> variables_;
};

Error error_with(const std::string& backend) {
  const Environment environment({{"FOREBAY_MPI_BACKEND", backend}});
  return test::error_from([] { mpi_backend(); });
}

TEST(MpiBackend, IsNotLoadedUntilItIsWanted) {
  EXPECT_EQ(loaded_mpi_backend(), nullptr);
  EXPECT_EQ(mpi_thread_level(), "not initialised");
  EXPECT_EQ(loaded_mpi_backend(), nullptr);
  EXPECT_TRUE(mpi_in_process().empty()) << describe(mpi_in_process());
}

TEST(MpiBackend, OfAnUnknownNameIsAnError) {
  const Error error = error_with("lam");
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), HasSubstr("FOREBAY_MPI_BACKEND=lam names no MPI backend"));
  EXPECT_EQ(error_with("backends/lam.so").kind(), ErrorKind::usage) << "a path is absolute";
}

TEST(MpiBackend, ThatIsNotThereIsAnErrorThatSaysWhere) {
  EXPECT_THAT(error_with("/nowhere/mpi.so").what(), HasSubstr("there is no /nowhere/mpi.so"));
}

TEST(MpiBackend, OfAnotherBuildIsRefused) {
  const Error error = error_with(FOREBAY_TEST_BACKENDS "/backend_of_another_build.so");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("the MPI backend is of Forebay 0.0.7"));
  EXPECT_THAT(error.what(), HasSubstr("install both from one build"));
}

TEST(MpiBackend, OfAnotherLayoutIsRefusedAndNotLookedInto) {
  const Error error = error_with(FOREBAY_TEST_BACKENDS "/backend_of_another_layout.so");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("interface 4000000000"));
}

TEST(MpiBackend, ThatIsNoneIsRefused) {
  const Error error = error_with(FOREBAY_TEST_BACKENDS "/backend_that_is_none.so");
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("it does not export forebay_mpi_backend"));
}

struct Told {
  std::map<std::string, std::string> variables;
  std::string name;
  MpiFlavour flavour;
  int started;
};

TEST(MpiLauncher, IsToldByItsVariables) {
  const Told cases[] = {
      {{{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "1"}},
       "mpirun of Open MPI",
       MpiFlavour::openmpi,
       4},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}, "mpirun of MPICH", MpiFlavour::mpich, 3},
      {{{"PMI_FD", "5"}, {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}},
       "srun",
       MpiFlavour::mpich,
       8},
      {{{"PMIX_RANK", "5"}, {"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}},
       "srun",
       MpiFlavour::openmpi,
       8},
      // The innermost: mpirun of Open MPI inside of a step of Slurm or of MPICH's launcher.
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}},
       "mpirun of Open MPI",
       MpiFlavour::openmpi,
       2},
  };
  for (const Told& told : cases) {
    const Environment environment(told.variables);
    const auto launcher = find_mpi_launcher();
    ASSERT_TRUE(launcher);
    EXPECT_EQ(launcher->name, told.name);
    EXPECT_EQ(launcher->flavour, told.flavour);
    EXPECT_EQ(launcher->started, told.started);
    EXPECT_TRUE(launched_by_mpi());
  }
}

TEST(MpiLauncher, IsNoneWhereNothingTellsOfOne) {
  const Environment environment({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}});
  EXPECT_FALSE(find_mpi_launcher());
  EXPECT_FALSE(launched_by_mpi());
}

}  // namespace
}  // namespace forebay
