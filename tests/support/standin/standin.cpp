// Makes torch's build for the CPU say that it has GPUs: a tensor's device is "cuda", the CPU's kernels compute it.
//
// It lets code for GPUs run line by line where there is none. It says nothing of CUDA's numbers and speed: which
// operations race, which refuse to, and which are out of order is told to it by the test (`faults`).
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/SparseTensorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>
#include <torch/library.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace standin {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

int gpus() {
  const char* text = std::getenv("STANDIN_GPUS");
  return text ? std::atoi(text) : 1;
}

// --- the driver: started in one process, and broken in what is forked from it afterwards ---

thread_local DeviceIndex current = 0;
std::atomic<int> started_in{0};

void call_driver() {
  int nobody = 0, me = getpid();
  TORCH_CHECK(started_in.compare_exchange_strong(nobody, me) || nobody == me, "CUDA error: initialization error");
}

void select(DeviceIndex index) {
  call_driver();
  if (index >= 0) current = index;
}

// --- streams: work is over when it returns, but what it waits for is noted, as CUDA would have to be told ---

using Clock = std::map<c10::StreamId, uint64_t>;  // how much of each stream's work has been waited for
thread_local c10::StreamId stream = 0;
struct Order {
  std::map<c10::StreamId, Clock> streams;
  Clock processor;
  std::map<const void*, std::pair<c10::StreamId, uint64_t>> written;  // by whom memory was written last, and when
} order;
std::mutex lock;

void wait(Clock& one, const Clock& other) {
  for (const auto& [id, time] : other) one[id] = std::max(one[id], time);
}

void wait_for_all(Clock& one) {
  for (const auto& each : order.streams) wait(one, each.second);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device getDevice() const override {
    call_driver();
    return Device(DeviceType::CUDA, current);
  }
  Device exchangeDevice(Device to) const override {
    Device before = getDevice();
    select(to.index());
    return before;
  }
  void setDevice(Device to) const override { select(to.index()); }
  void uncheckedSetDevice(Device to) const noexcept override { current = to.index() < 0 ? 0 : to.index(); }
  Stream getStream(Device on) const noexcept override { return Stream(Stream::UNSAFE, on, stream); }
  Stream getDefaultStream(Device on) const override { return Stream(Stream::DEFAULT, on); }
  Stream getStreamFromGlobalPool(Device on, bool) const override { return getStream(on); }
  Stream getNewStream(Device on, int) const override { return getStream(on); }
  Stream exchangeStream(Stream to) const noexcept override {
    Stream before = getStream(to.device());
    stream = to.id();
    return before;
  }
  DeviceIndex deviceCount() const noexcept override { return static_cast<DeviceIndex>(gpus()); }
  void record(void** event, const Stream& on, const DeviceIndex, const c10::EventFlag) const override {
    std::lock_guard<std::mutex> held(lock);
    if (!*event) *event = new Clock;
    *static_cast<Clock*>(*event) = order.streams[on.id()];
  }
  void block(void* event, const Stream& on) const override {
    std::lock_guard<std::mutex> held(lock);
    if (event) wait(order.streams[on.id()], *static_cast<Clock*>(event));
  }
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const Stream&) const override { return true; }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override { delete static_cast<Clock*>(event); }
  void synchronizeStream(const Stream& on) const override {
    std::lock_guard<std::mutex> held(lock);
    wait(order.processor, order.streams[on.id()]);
  }
  void synchronizeEvent(void* event) const override {
    std::lock_guard<std::mutex> held(lock);
    if (event) wait(order.processor, *static_cast<Clock*>(event));
  }
  void synchronizeDevice(const DeviceIndex) const override {
    std::lock_guard<std::mutex> held(lock);
    wait_for_all(order.processor);
  }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};

// --- memory and random numbers: the processor's ---

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes ? c10::alloc_cpu(bytes) : nullptr;
    return {data, data, &c10::free_cpu, Device(DeviceType::CUDA, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &c10::free_cpu; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};
Memory memory;

struct Draws final : c10::GeneratorImpl {
  at::Generator cpu;
  uint64_t offset = 0;
  explicit Draws(DeviceIndex index)
      : GeneratorImpl(Device(DeviceType::CUDA, index), c10::DispatchKeySet(c10::DispatchKey::CUDA)),
        cpu(at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val)) {}
  c10::GeneratorImpl* inner() const { return cpu.unsafeGetGeneratorImpl(); }
  void set_current_seed(uint64_t seed) override {
    offset = 0;
    inner()->set_current_seed(seed);
  }
  uint64_t current_seed() const override { return inner()->current_seed(); }
  uint64_t seed() override { return inner()->seed(); }
  void set_offset(uint64_t value) override { offset = value; }
  uint64_t get_offset() const override { return offset; }
  void set_state(const c10::TensorImpl& state) override { inner()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return inner()->get_state(); }
  c10::GeneratorImpl* clone_impl() const override {
    auto* copy = new Draws(device().index());
    copy->cpu = cpu.clone();
    return copy;
  }
};

at::Generator& default_draws(DeviceIndex index) {
  static std::vector<at::Generator> all = [] {
    std::vector<at::Generator> made;
    for (DeviceIndex i = 0; i < 8; i++) made.push_back(at::make_generator<Draws>(i));
    return made;
  }();
  return all.at(index < 0 ? current : index);
}

at::Generator cpu_of(const at::Generator& draws) { return static_cast<Draws*>(draws.unsafeGetGeneratorImpl())->cpu; }

struct Hooks : at::CUDAHooksInterface {
  explicit Hooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  // Not virtual before torch 2.8, so without `override`.
  bool isBuilt() const { return true; }
  bool isAvailable() const { return gpus() > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override { return default_draws(index); }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<Draws>(index < 0 ? current : index);
  }
  Device getDeviceFromPtr(void*) const override { return Device(DeviceType::CUDA, current); }
  c10::Allocator* getCUDADeviceAllocator() const override { return &memory; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  int getNumGPUs() const override { return gpus(); }
  DeviceIndex deviceCount() const override { return static_cast<DeviceIndex>(gpus()); }
  DeviceIndex current_device() const override { return current; }
  DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(DeviceIndex index) const override { select(index); }
  DeviceIndex exchangeDevice(DeviceIndex index) const override {
    auto before = current;
    select(index);
    return before;
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override { return exchangeDevice(index); }
  void deviceSynchronize(DeviceIndex) const override {}
  long versionCUDART() const override { return 13000; }
  std::string showConfig() const override { return "a stand-in"; }
};

// --- tensors: the same memory under the other device's name ---

void let_go(void* kept) { delete static_cast<c10::Storage*>(kept); }

c10::Storage renamed(const c10::Storage& storage, Device to) {
  const auto& data = storage.data_ptr();
  if (data.get_deleter() == &let_go) {  // it is itself the other name of one
    auto* first = static_cast<c10::Storage*>(data.get_context());
    if (first->device() == to && first->nbytes() == storage.nbytes() && first->data() == storage.data()) return *first;
  }
  auto* allocator = to.is_cpu() ? c10::GetCPUAllocator() : static_cast<c10::Allocator*>(&memory);
  c10::DataPtr same(const_cast<void*>(storage.data()), new c10::Storage(storage), &let_go, to);
  auto size = c10::SymInt(static_cast<int64_t>(storage.nbytes()));
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), size, std::move(same), allocator, true));
}

at::SparseTensorImpl* sparse(const at::Tensor& tensor) {
  return static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

at::Tensor renamed(const at::Tensor& tensor, Device to) {
  if (!tensor.defined() || tensor.device().type() == to.type()) return tensor;
  if (tensor.is_sparse()) {
    auto key = to.is_cpu() ? c10::DispatchKey::SparseCPU : c10::DispatchKey::SparseCUDA;
    auto made = c10::make_intrusive<at::SparseTensorImpl>(c10::DispatchKeySet(key), tensor.dtype());
    made->resize_(sparse(tensor)->sparse_dim(), sparse(tensor)->dense_dim(), tensor.sizes());
    made->set_indices_and_values_unsafe(
        renamed(sparse(tensor)->indices(), to), renamed(sparse(tensor)->values(), to));
    made->set_coalesced(sparse(tensor)->coalesced());
    return at::Tensor(std::move(made));
  }
  c10::DispatchKeySet keys(to.is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA);
  if (tensor.is_conj()) keys = keys.add(c10::DispatchKey::Conjugate);
  if (tensor.is_neg()) keys = keys.add(c10::DispatchKey::Negative);
  auto made = c10::make_intrusive<c10::TensorImpl>(renamed(tensor.storage(), to), keys, tensor.dtype());
  made->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) made->set_wrapped_number(true);
  return at::Tensor(std::move(made));
}

// --- faults, by the names of operations ---

struct Faults {
  std::set<std::string> racing, refusing, broken;
} faults;  // without the flag; with it; always
std::set<std::string> called;  // "mm Half cuda:1": what was computed of which type, and where; the flags that were on

using Pairs = std::vector<std::pair<at::Tensor, at::Tensor>>;  // GPU's, CPU's

void nudge(const at::Tensor& tensor) {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  if (!tensor.defined() || !tensor.is_floating_point() || !tensor.numel() || !tensor.is_contiguous()) return;
  auto one = tensor.view(-1).narrow(0, static_cast<int64_t>(random() % tensor.numel()), 1);
  // By at least 0.1 and as much as it is: a check of the precision of a whole matrix has to see it, too.
  one.add_(one.sign(), 0.1).mul_(2.0 + 0.01 * static_cast<double>(random() % 1000)).add_(1e-3);
}

const void* memory_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cuda() && !tensor.is_sparse() ? tensor.storage().data() : nullptr;
}

// Whether all that has written these tensors has been waited for. This is the stream's next work.
bool in_order(const Pairs& pairs) {
  Clock& mine = order.streams[stream];
  wait(mine, order.processor);
  mine[stream]++;
  bool all = true;
  for (const auto& pair : pairs) {
    auto found = order.written.find(memory_of(pair.first));
    if (found == order.written.end() || !found->first) continue;
    auto [by, when] = found->second;
    all = all && mine[by] >= when;
  }
  return all;
}

void has_written(const at::Tensor& tensor) {
  if (auto* place = memory_of(tensor)) order.written[place] = {stream, order.streams[stream][stream]};
}

// CUDA sorts what these accumulate, whatever the flag says (pytorch/pytorch#55827); the CPU's kernels race.
struct Sorted {
  bool before = at::globalContext().deterministicAlgorithms();
  bool warning = at::globalContext().deterministicAlgorithmsWarnOnly();
  bool own;
  explicit Sorted(const std::string& name)
      : own(!before && (name == "index_put_" || name == "index_put" || name == "_index_put_impl_")) {
    if (own) at::globalContext().setDeterministicAlgorithms(true, warning);
  }
  ~Sorted() {
    if (own) at::globalContext().setDeterministicAlgorithms(before, warning);
  }
};

// --- every operation: its arguments renamed, the CPU's kernel, its results renamed back ---

void follow(const Pairs& pairs) {
  // What was written into may have another size, or other memory.
  for (const auto& [gpu, cpu] : pairs) {
    if (gpu.is_sparse() && cpu.is_sparse()) {
      auto *to = sparse(gpu), *from = sparse(cpu);
      if (to->sizes() != from->sizes()) to->raw_resize_(from->sparse_dim(), from->dense_dim(), from->sizes());
      to->set_indices_and_values_unsafe(
          renamed(from->indices(), gpu.device()), renamed(from->values(), gpu.device()));
      to->set_coalesced(from->coalesced());
      continue;
    }
    const auto& made = cpu.storage();
    if (made.data() != gpu.storage().data() || made.nbytes() != gpu.storage().nbytes()) {
      auto* own = gpu.storage().unsafeGetStorageImpl();
      own->set_data_ptr_noswap(
          c10::DataPtr(const_cast<void*>(made.data()), new c10::Storage(made), &let_go, gpu.device()));
      own->set_nbytes(made.nbytes());
    }
    if (cpu.sizes() != gpu.sizes() || cpu.strides() != gpu.strides() || cpu.storage_offset() != gpu.storage_offset())
      gpu.unsafeGetTensorImpl()->set_sizes_and_strides(cpu.sizes(), cpu.strides(), cpu.storage_offset());
  }
}

void on_the_cpu(const c10::OperatorHandle& operation, c10::DispatchKeySet, torch::jit::Stack* stack) {
  call_driver();
  const auto& schema = operation.schema();
  std::string name = operation.operator_name().name;
  name = name.substr(name.find("::") + 2);
  bool race = false;
  {
    std::lock_guard<std::mutex> held(lock);
    bool flag = at::globalContext().deterministicAlgorithms();
    if (flag && faults.refusing.count(name)) at::globalContext().alertNotDeterministic(name + "_cuda");
    race = faults.broken.count(name) || (!flag && faults.racing.count(name));
  }
  static const std::set<std::string> strict = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "convolution"};
#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 10
  if (strict.count(name) && name != "convolution") at::globalContext().alertCuBLASConfigNotDeterministic();
#endif
  auto arguments = torch::jit::pop(*stack, schema.arguments().size());
  Pairs pairs;
  std::vector<at::Tensor> changed;
  Device device(DeviceType::CUDA, current);
  bool told = false, crosses = false;
  auto given = [&](const at::Tensor& tensor) {
    TORCH_CHECK(
        !tensor.defined() || tensor.is_cuda() || !tensor.dim() || !strict.count(name),
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!");
    crosses = crosses || (tensor.defined() && tensor.is_cpu());
    if (!tensor.defined() || !tensor.is_cuda()) return tensor;
    if (!told) device = tensor.device();
    told = true;
    for (const auto& pair : pairs)
      if (pair.first.is_same(tensor)) return pair.second;
    pairs.emplace_back(tensor, renamed(tensor, Device(DeviceType::CPU)));
    return pairs.back().second;
  };
  auto all = [&](const std::vector<at::Tensor>& tensors) {
    c10::List<at::Tensor> list;
    for (const auto& tensor : tensors) list.push_back(given(tensor));
    return list;
  };
  for (size_t at = 0; at < arguments.size(); at++) {
    auto& value = arguments[at];
    const auto* alias = schema.arguments()[at].alias_info();
    if (alias && alias->isWrite() && value.isTensor()) changed.push_back(value.toTensor());
    if (alias && alias->isWrite() && value.isTensorList())
      for (const auto& tensor : value.toTensorVector()) changed.push_back(tensor);
    bool generator = schema.arguments()[at].type()->str().find("Generator") != std::string::npos;
    if (value.isTensor()) {
      value = given(value.toTensor());
    } else if (value.isTensorList()) {
      value = all(value.toTensorVector());
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& each : value.toOptionalTensorList()) {
        std::optional<at::Tensor> tensor = each;
        list.push_back(tensor ? std::optional<at::Tensor>(given(*tensor)) : tensor);
      }
      value = list;
    } else if (value.isList() && !value.toListRef().empty() && value.toListRef()[0].isTensorList()) {
      auto lists = c10::impl::GenericList(c10::ListType::ofTensors());
      for (const auto& each : value.toListRef()) lists.push_back(all(each.toTensorVector()));
      value = lists;
    } else if (value.isDevice() && value.toDevice().is_cuda()) {
      if (!told && value.toDevice().has_index()) device = value.toDevice();
      value = Device(DeviceType::CPU);
    } else if (value.isGenerator() && value.toGenerator().device().is_cuda()) {
      value = cpu_of(value.toGenerator());
    } else if (value.isNone() && generator) {
      value = cpu_of(default_draws(device.index()));
    }
  }
  std::string on;
  for (size_t at = 0; at < arguments.size(); at++)
    if (arguments[at].isBool() && arguments[at].toBool()) on += " " + schema.arguments()[at].name();
  // Without non_blocking, a copy from or to the processor's memory ends before the processor goes on.
  bool waits = name == "_local_scalar_dense" || name == "nonzero" || (name == "copy_" && crosses && on.empty());
  {
    std::lock_guard<std::mutex> held(lock);
    for (const auto& pair : pairs)
      called.insert(name + " " + c10::toString(pair.first.scalar_type()) + " " + pair.first.device().str() + on);
    if (!in_order(pairs)) {
      race = true;
      called.insert("not waited for: " + name);
    }
  }
  for (auto& value : arguments) stack->push_back(value);
  {
    Sorted sorted(name);
    operation.callBoxed(stack);
  }
  follow(pairs);
  auto back = [&](const at::Tensor& tensor) {
    if (race) nudge(tensor);
    for (const auto& pair : pairs)
      if (tensor.defined() && pair.second.is_same(tensor)) return pair.first;
    return renamed(tensor, device);
  };
  std::vector<at::Tensor> results;
  for (auto& value : torch::jit::pop(*stack, schema.returns().size())) {
    if (value.isTensor()) {
      results.push_back(back(value.toTensor()));
      value = results.back();
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(back(tensor));
      for (const at::Tensor& tensor : list) results.push_back(tensor);
      value = list;
    }
    stack->push_back(std::move(value));
  }
  std::lock_guard<std::mutex> held(lock);
  for (const auto& tensor : results) has_written(tensor);
  for (const auto& tensor : changed) has_written(tensor);
  if (waits) wait(order.processor, order.streams[stream]);
}

torch::CppFunction boxed() { return torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>(); }

// Operations that choose by the device a kernel which the CPU's build lacks: there and back, with gradients.
std::vector<at::Tensor> there(at::TensorList tensors) {
  std::vector<at::Tensor> found;
  for (const auto& tensor : tensors) found.push_back(tensor.cpu());
  return found;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm(
    const at::Tensor& x, at::TensorList state, at::TensorList weights, bool biases, int64_t layers, double dropout,
    bool train, bool both, bool first) {
  auto [y, h, c] = at::lstm(x.cpu(), there(state), there(weights), biases, layers, dropout, train, both, first);
  return {y.to(x.device()), h.to(x.device()), c.to(x.device())};
}

std::tuple<at::Tensor, at::Tensor> gru(
    const at::Tensor& x, const at::Tensor& state, at::TensorList weights, bool biases, int64_t layers, double dropout,
    bool train, bool both, bool first) {
  auto [y, h] = at::gru(x.cpu(), state.cpu(), there(weights), biases, layers, dropout, train, both, first);
  return {y.to(x.device()), h.to(x.device())};
}

}  // namespace standin

namespace at {
namespace {
using StandinHooks = standin::Hooks;
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, StandinHooks)
}  // namespace
}  // namespace at
namespace c10::impl {
namespace {
C10_REGISTER_GUARD_IMPL(CUDA, standin::Guard)
}
}  // namespace c10::impl
namespace c10d {
namespace {
struct StandinTimer : Timer {
  explicit StandinTimer(c10::Device) {}
  std::optional<int64_t> measureDifference(Event from, Event to) override { return getTimeRef(to) - getTimeRef(from); }
};
C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::kCUDA, StandinTimer)
}  // namespace
}  // namespace c10d

TORCH_LIBRARY_IMPL(_, CUDA, m) { m.fallback(standin::boxed()); }
TORCH_LIBRARY_IMPL(_, SparseCUDA, m) { m.fallback(standin::boxed()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) {  // those whose general kernel would come before the fallback
  for (const char* name :
       {"copy_", "convolution", "convolution_overrideable", "convolution_backward", "native_batch_norm",
        "native_batch_norm_backward", "set_", "set_.source_Storage", "set_.source_Storage_storage_offset",
        "set_.source_Tensor", "_foreach_add_.List"})
    m.impl(name, standin::boxed());
}
TORCH_LIBRARY_IMPL(aten, SparseCUDA, m) {
  for (const char* name : {"copy_", "copy_sparse_to_sparse_"}) m.impl(name, standin::boxed());
}
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, m) {
  m.impl("lstm.input", standin::lstm);
  m.impl("gru.input", standin::gru);
  // Not cuDNN's: the general one is what the CPU has.
  auto no = [](const at::Tensor&, const at::Tensor&, at::IntArrayRef, at::IntArrayRef, int64_t) { return false; };
  auto neither = [](const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&, int64_t) {
    return false;
  };
  m.impl("_use_cudnn_ctc_loss", no);
  m.impl("_use_cudnn_ctc_loss.Tensor", neither);
  m.impl("_use_miopen_ctc_loss", no);
  m.impl("_use_miopen_ctc_loss.Tensor", neither);
}

// --- for Python's ctypes: no header of Python is needed, and an exception becomes a status ---

std::set<std::string> words(const char* text) {
  std::set<std::string> found;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) found.insert(word);
  return found;
}

extern "C" {

int standin_gpus() { return standin::gpus(); }

int standin_device() { return standin::current; }

int standin_call_driver() {
  try {
    standin::call_driver();
  } catch (const c10::Error&) {
    return 1;
  }
  return 0;
}

int64_t standin_stream() { return standin::stream; }

void standin_set_stream(int64_t id) { standin::stream = id; }

// What a stream, or the processor (below 0), waits for: an event, or all of a stream, or of all streams (below 0).
void* standin_record(int64_t id) {
  std::lock_guard<std::mutex> held(standin::lock);
  auto* clock = new standin::Clock;
  if (id < 0) standin::wait_for_all(*clock);
  else *clock = standin::order.streams[id];
  return clock;
}

void standin_wait(int64_t id, void* event) {
  std::lock_guard<std::mutex> held(standin::lock);
  standin::wait(id < 0 ? standin::order.processor : standin::order.streams[id], *static_cast<standin::Clock*>(event));
}

void standin_select(int index) {
  if (index >= 0) standin::current = static_cast<c10::DeviceIndex>(index);
}

// A GPU's own generator, or a new one for it, which nobody frees.
const at::Generator* standin_generator(int index, int own) {
  auto device = static_cast<c10::DeviceIndex>(index);
  if (own) return &standin::default_draws(device);
  return new at::Generator(at::make_generator<standin::Draws>(device < 0 ? standin::current : device));
}

void standin_faults(const char* racing, const char* refusing, const char* broken) {
  std::lock_guard<std::mutex> held(standin::lock);
  standin::faults = {words(racing), words(refusing), words(broken)};
}

// What has been computed since the last call of this, a line each.
const char* standin_called() {
  static std::string text;
  std::lock_guard<std::mutex> held(standin::lock);
  text.clear();
  for (const auto& each : standin::called) text += each + "\n";
  standin::called.clear();
  return text.c_str();
}

// NCCL's operations, which gloo then does: the tensors are in the processor's memory.
void standin_take_over(const char* names) {
  static std::vector<std::unique_ptr<torch::Library>> kept;
  for (const auto& name : words(names)) {
    kept.push_back(std::make_unique<torch::Library>(
        torch::Library::IMPL, "c10d", c10::DispatchKey::CUDA, __FILE__, __LINE__));
    kept.back()->impl(name.c_str(), standin::boxed());
  }
}

void standin_start() { c10::SetAllocator(c10::DeviceType::CUDA, &standin::memory, 255); }
}
