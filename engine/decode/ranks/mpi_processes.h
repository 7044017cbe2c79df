// A command's part in ranks=mpi (mpi_ranks.h).
#pragma once

#include <memory>
#include <string>

namespace engine {

class EarlierTexts;
class LanguageModel;

/// The processes of a command, while it may decode with ranks=mpi.
class MpiProcesses {
 public:
  /// Joins the other processes.
  /// @throws Error  as mpi_exchange()
  MpiProcesses();
  /// Rank 0: informs the others that no more runs follow.
  ~MpiProcesses();
  MpiProcesses(const MpiProcesses&) = delete;
  MpiProcesses& operator=(const MpiProcesses&) = delete;

  /// True in rank 0, which runs the command.
  bool leads() const;
  /// In the other ranks: follows rank 0's runs to the last one.
  /// @param model         as the command of rank 0 loads it; runs with other weights end all processes
  /// @param weights_hash  its
  /// @param texts         as rank 0's decoders get them
  void follow_runs(LanguageModel& model,
                   const std::string& weights_hash,
                   const std::shared_ptr<const EarlierTexts>& texts) const;
  /// Number of processes.
  int n_processes() const;
};

}  // namespace engine
