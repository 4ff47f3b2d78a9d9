// What PyTorch asks of a CUDA build that fake "cuda" tensors need and a machine without a GPU does not have.
//
// Three things, none of which computes or allocates: a device guard for one device whose only stream is number 0
// (autograd, streams and events ask it), answers of the CUDA hooks so that composite ops choose as on CUDA (cudnn
// batch norm, native_dropout, the convolution backend), and both registered before anything in torch has asked.
// Compiled by shim.py against the headers of the installed torch, 2.6 and newer. Methods carry no "override" where
// releases differ in whether the base class has them, and "noexcept" where one release (2.6) asks for it.

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdint>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

constexpr long kCudnnVersion = 91002;  // any recent 9.x: newer than every threshold in ATen

Device the_device() { return Device(DeviceType::CUDA, 0); }
Stream the_stream() { return Stream(Stream::DEFAULT, the_device()); }

struct Guard final : public c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return the_device(); }
  Device getDevice() const override { return the_device(); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  DeviceIndex deviceCount() const noexcept override { return 1; }

  Stream getStream(Device) const noexcept override { return the_stream(); }
  Stream getDefaultStream(Device) const override { return the_stream(); }
  Stream getStreamFromGlobalPool(Device, bool) const override { return the_stream(); }
  Stream getNewStream(Device, int) const override { return the_stream(); }
  Stream exchangeStream(Stream) const noexcept override { return the_stream(); }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
  void synchronizeDevice(DeviceIndex) const {}

  void record(void** event, const Stream&, const DeviceIndex, const c10::EventFlag) const override {
    static int recorded = 0;
    *event = &recorded;  // engines take nullptr for "never recorded"
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  void synchronizeEvent(void*) const {}
  double elapsedTime(void*, void*, const DeviceIndex) const { return 0.0; }
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}
};

struct Hooks final : public at::CUDAHooksInterface {
  Hooks() = default;
  explicit Hooks(at::CUDAHooksArgs) {}

  void init() const {}
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const { return 1; }
  DeviceIndex current_device() const { return 0; }
  DeviceIndex getCurrentDevice() const { return 0; }
  void setCurrentDevice(DeviceIndex) const {}
  DeviceIndex exchangeDevice(DeviceIndex) const { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const { return 0; }
  int getNumGPUs() const { return 1; }
  void deviceSynchronize(DeviceIndex) const {}

  bool hasCUDA() const { return true; }
  bool hasCUDART() const { return true; }
  bool hasCuDNN() const { return true; }
  bool hasCuBLASLt() const { return true; }
  bool compiledWithCuDNN() const { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const { return true; }
  long versionCuDNN() const { return kCudnnVersion; }
  long versionRuntimeCuDNN() const { return kCudnnVersion; }
  long versionCUDART() const { return 12080; }
  double batchnormMinEpsilonCuDNN() const { return 0.0; }  // CUDNN_BN_MIN_EPSILON since cuDNN 7.5
};

std::unique_ptr<at::CUDAHooksInterface> make_hooks(at::CUDAHooksArgs) { return std::make_unique<Hooks>(); }

}  // namespace

extern "C" {

// Once, before torch is imported: the hooks are asked for here so that torch keeps ours. Returns 1 when it has.
int floodmark_claim_hooks() {
  at::CUDAHooksRegistry()->Register("CUDAHooks", &make_hooks, c10::REGISTRY_PREFERRED);
  return dynamic_cast<const Hooks*>(&at::detail::getCUDAHooks()) != nullptr;
}

// Again after torch is imported: a CUDA build has registered its own guard meanwhile.
void floodmark_claim_guard() {
  static const Guard* const guard = new Guard();  // leaked, as the registry wants it
  static_cast<void>(c10::impl::DeviceGuardImplRegistrar(DeviceType::CUDA, guard));
}

}  // extern "C"
