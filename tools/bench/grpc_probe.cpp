// The gRPC probe of echo_probes.hpp: a bidirectional stream kept open, one message each way at a
// time, without generated code. An own process serves; the library is not touched before the fork.
#include "tools/bench/echo_probes.hpp"

#ifdef PICKD_BENCH_GRPC

#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace pickd::bench {

namespace {

constexpr std::size_t kLengthDigits = 20;  // a message begins with the length of its answer
constexpr char kMethod[] = "/pickd.bench.Echo/Stream";

grpc::ByteBuffer make_message(std::size_t bytes) {
  const grpc::Slice slice(std::string(bytes, 'x'));
  return grpc::ByteBuffer(&slice, 1);
}

// Answers each message of a stream with `answer_bytes`, which the first message names in text.
class EchoReactor : public grpc::ServerGenericBidiReactor {
 public:
  EchoReactor() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (first_) {
      grpc::Slice slice;
      if (!request_.DumpToSingleSlice(&slice).ok()) return Finish(grpc::Status::CANCELLED);
      answer_bytes_ =
          std::stoul(std::string(reinterpret_cast<const char*>(slice.begin()), kLengthDigits));
      first_ = false;
    }
    answer_ = make_message(answer_bytes_);
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  std::size_t answer_bytes_ = 0;
  bool first_ = true;
};

class EchoService : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new EchoReactor();
  }
};

void serve(int port_pipe) {
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) port = 0;
  if (::write(port_pipe, &port, sizeof port) != sizeof port || port == 0) return;
  server->Wait();
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("gRPC probe: no pipe");
    read_end = base::Fd(ends[0]);
    write_end = base::Fd(ends[1]);
  }
  base::Fd read_end;
  base::Fd write_end;
};

class GrpcProbe : public EchoProbe {
 public:
  GrpcProbe() : child_([this] { serve(pipe_.write_end.get()); }) { pipe_.write_end.reset(); }

  void begin(std::size_t bytes, std::size_t answer_bytes, std::size_t) override {
    connect();
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub_->PrepareCall(context_.get(), kMethod, &queue_);
    stream_->StartCall(this);
    wait();
    std::string text = std::to_string(answer_bytes);
    text.insert(0, kLengthDigits - text.size(), '0');
    text.resize(std::max(bytes, kLengthDigits), 'x');
    const grpc::Slice slice(text);
    message_ = grpc::ByteBuffer(&slice, 1);
    answer_bytes_ = answer_bytes;
  }
  void once() override {
    grpc::ByteBuffer answer;
    // The read is asked for before the write is done: one wait less for the stream.
    stream_->Read(&answer, this);
    stream_->Write(message_, this);
    wait();
    wait();
    if (answer.Length() != answer_bytes_) throw std::runtime_error("gRPC probe: a wrong answer");
  }
  void end() override {
    stream_->WritesDone(this);
    wait();
    grpc::Status status;
    stream_->Finish(&status, this);
    wait();
    stream_.reset();
  }

 private:
  void connect() {
    if (stub_ != nullptr) return;
    int port = 0;
    if (::read(pipe_.read_end.get(), &port, sizeof port) != sizeof port || port == 0)
      throw std::runtime_error("gRPC probe: its server did not start");
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  }
  void wait() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok) || !ok) throw std::runtime_error("gRPC probe: the stream broke");
  }

  Pipe pipe_;
  EchoChild child_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::ByteBuffer message_;
  std::size_t answer_bytes_ = 0;
};

}  // namespace

std::unique_ptr<EchoProbe> make_grpc_probe() { return std::make_unique<GrpcProbe>(); }

}  // namespace pickd::bench

#else

namespace pickd::bench {

std::unique_ptr<EchoProbe> make_grpc_probe() { return nullptr; }

}  // namespace pickd::bench

#endif
