// Graphs of kernels: creation, instantiation, updates and launch.
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "kernels/emulation/launched.h"
#include "kernels/emulation/watch.h"

namespace kernels::emulation {

struct GraphNode {
  Launched launched;
  std::vector<const GraphNode*> after;
};
struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in the order of creation
};
struct GraphExec {
  std::vector<const GraphNode*> nodes;
  std::vector<Launched> launches;       // of nodes, with the last update
  std::vector<std::size_t> late_order;  // indices of nodes
};

namespace {

struct Graphs {
  std::mutex lock;
  std::set<const Graph*> all;
};
Graphs& graphs() {
  static Graphs& all = *new Graphs;  // never destroyed, like the runtime
  return all;
}

bool is_there(const GraphNode* node) {
  Graphs& registered = graphs();
  const std::lock_guard hold(registered.lock);
  return std::any_of(registered.all.begin(), registered.all.end(), [&](const Graph* graph) {
    return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                       [&](const auto& one) { return one.get() == node; });
  });
}

// An allowed order of the nodes: the next one is always the last created node whose dependencies
// are done.
std::vector<std::size_t> late_order(const Graph& graph) {
  const std::size_t n = graph.nodes.size();
  std::vector<std::size_t> order;
  std::set<const GraphNode*> done;
  while (order.size() < n) {
    std::size_t next = n;
    const auto may_run = [&](const GraphNode* node) {
      return !done.contains(node) && std::all_of(node->after.begin(), node->after.end(),
                                                 [&](auto* one) { return done.contains(one); });
    };
    do next--;
    while (!may_run(graph.nodes[next].get()));
    order.push_back(next);
    done.insert(graph.nodes[next].get());
  }
  return order;
}

void run_launches(const std::vector<Launched>& launches, const std::vector<std::size_t>& late) {
  const auto as_made = [&] {
    for (const Launched& launched : launches) run_watched(launched);
  };
  if (std::is_sorted(late.begin(), late.end())) return as_made();
  run_both_ways(as_made, [&] {
    for (const std::size_t i : late) run_watched(launches[i]);
  });
}

}  // namespace

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = nullptr;
  if (const cudaError_t error = begin_call("cudaGraphCreate")) return error;
  *graph = new Graph;
  Graphs& registered = graphs();
  const std::lock_guard hold(registered.lock);
  registered.all.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  {
    Graphs& registered = graphs();
    const std::lock_guard hold(registered.lock);
    if (registered.all.erase(graph) == 0) return refused(cudaErrorInvalidValue);
  }
  delete graph;
  return begin_call("cudaGraphDestroy");
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies,
                                   std::size_t n_dependencies,
                                   const cudaKernelNodeParams* params) {
  *node = nullptr;
  if (const cudaError_t error = begin_call("cudaGraphAddKernelNode")) return error;
  auto made = std::make_unique<GraphNode>();
  if (const cudaError_t error = read_launch(*params, made->launched)) return error;
  for (std::size_t i = 0; i < n_dependencies; i++) {
    const auto same = [&](const auto& one) { return one.get() == dependencies[i]; };
    if (std::none_of(graph->nodes.begin(), graph->nodes.end(), same))
      return refused(cudaErrorInvalidValue);
    made->after.push_back(dependencies[i]);
  }
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  return cudaSuccess;
}

cudaError_t add_early_edge(cudaGraph_t graph, cudaGraphNode_t from, cudaGraphNode_t to) {
  if (const cudaError_t error = begin_call("cudaGraphAddDependencies")) return error;
  const auto in_graph = [&](const GraphNode* node) {
    return std::any_of(graph->nodes.begin(), graph->nodes.end(),
                       [&](const auto& one) { return one.get() == node; });
  };
  if (!in_graph(from) || !in_graph(to)) return refused(cudaErrorInvalidValue);
  to->after.push_back(from);
  to->launched.early = true;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec,
                                          cudaGraph_t graph,
                                          unsigned long long) {
  *exec = nullptr;
  if (const cudaError_t error =
          begin_call("cudaGraphInstantiateWithFlags", cudaErrorMemoryAllocation))
    return error;
  *exec = new GraphExec{{}, {}, late_order(*graph)};
  for (const auto& node : graph->nodes) {
    (*exec)->nodes.push_back(node.get());
    (*exec)->launches.push_back(node->launched);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec,
                                             cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  if (const cudaError_t error = begin_call("cudaGraphExecKernelNodeSetParams")) return error;
  const auto found = std::find(exec->nodes.begin(), exec->nodes.end(), node);
  if (found == exec->nodes.end() || !is_there(node) || node->launched.kernel != params->func)
    return refused(cudaErrorInvalidValue);
  Launched& launched = exec->launches[static_cast<std::size_t>(found - exec->nodes.begin())];
  const bool early = launched.early;
  const cudaError_t error = read_launch(*params, launched);
  launched.early = early;
  return error;
}

// Copies the current arguments, because later updates apply only to later launches.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaGraphLaunch")) return error;
  add_to_stream(stream, [launches = exec->launches, late = exec->late_order] {
    run_launches(launches, late);
  });
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return begin_call("cudaGraphExecDestroy");
}

}  // namespace kernels::emulation
