// A CUDA device that does nothing, for a build of torch without CUDA. With it, fake tensors can be on device "cuda":
// torch asks the device guard for streams and events, which are no-ops here, and the hooks for random generators, which
// are the CPU's. Nothing is computed, because fake tensors have shapes and no data.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

const Device THE_DEVICE(DeviceType::CUDA, 0);
const Stream THE_STREAM(Stream::DEFAULT, THE_DEVICE);

// The base class refuses events; autograd records one for every backward pass.
struct PretendGuard final : c10::impl::NoOpDeviceGuardImpl<DeviceType::CUDA> {
  Device getDevice() const override { return THE_DEVICE; }
  Device exchangeDevice(Device) const override { return THE_DEVICE; }
  Stream getStream(Device) const noexcept override { return THE_STREAM; }
  Stream getDefaultStream(Device) const override { return THE_STREAM; }
  Stream exchangeStream(Stream) const noexcept override { return THE_STREAM; }
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};

const c10::impl::DeviceGuardImplRegistrar REGISTERED_GUARD(DeviceType::CUDA, new PretendGuard());

}  // namespace

namespace at {

// torch finds this class by its name.
struct CUDAHooks final : CUDAHooksInterface {
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  const Generator& getDefaultGenerator(DeviceIndex) const override { return detail::getDefaultCPUGenerator(); }
  Generator getNewGenerator(DeviceIndex) const override { return make_generator<CPUGeneratorImpl>(); }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
